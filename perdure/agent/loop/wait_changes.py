"""The effect of events on the wait of a conversation, and on the signals that it keeps."""

from typing import Any

from perdure.agent.loop.forgotten_ids import remember_id
from perdure.agent.loop.state import State
from perdure.agent.loop.status import Trigger
from perdure.agent.loop.transition import move_status
from perdure.agent.loop.wait import MAX_KEPT_SIGNALS, KeptSignal, Wait, remembered_name
from perdure.events.summary import EventSummary


def begin_wait(state: State, event: EventSummary) -> dict[str, Any]:
    """Begin the wait that a pending action asks for."""
    action_id = event.action_id
    if action_id is None or all(action.action_id != action_id for action in state.pending):
        return {}
    call_id, value = event.tool_call_id or "", event.value or {}
    wait = Wait(seq=event.seq, action_id=action_id, tool_call_id=call_id, **value)
    return {**move_status(state, wait_trigger(wait)), "wait": wait}


def wait_trigger(wait: Wait) -> Trigger:
    """Return the trigger by which a conversation begins a wait, or goes on with it."""
    return "wait" if wait.question is None else "question"


def end_wait(state: State, wait: Wait, event: EventSummary) -> dict[str, Any]:
    """End the wait by its result; a signal that ended it is the oldest of its name."""
    woken = {**move_status(state, "wake"), "wait": None}
    if event.key != "signal":
        return woken
    same = [signal for signal in state.signals if signal.name == wait.signal]
    return {**woken, "signals": tuple(it for it in state.signals if it not in same[:1])}


def keep_signal(state: State, event: EventSummary) -> dict[str, Any]:
    """Keep a signal until a wait gets it, and the sender's id for it."""
    signals = (*state.signals, KeptSignal(name=event.key or "", seq=event.seq))
    # One more than are kept, as a wait may be about to get it.
    kept: dict[str, Any] = {"signals": signals[-MAX_KEPT_SIGNALS - 1 :]}
    if event.message_id is None:
        return kept
    name = remembered_name(event.message_id)
    seqs, forgotten = remember_id(state.message_seqs, state.forgotten_ids, name, event.seq)
    return {**kept, "message_seqs": seqs, "forgotten_ids": forgotten}
