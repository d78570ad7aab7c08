"""The effect of each event on the state of its conversation."""

import hashlib
from collections.abc import Collection, Mapping
from functools import reduce
from typing import Any

from perdure.agent.loop.endings import find_ending, request_condensation
from perdure.agent.loop.forgotten_ids import remember_id
from perdure.agent.loop.phase import SUSPENDED_REASON
from perdure.agent.loop.scopes import MAX_NAMED_KEY_BYTES, MAX_NAMED_KEYS
from perdure.agent.loop.state import (
    FOLD_VERSION,
    Ending,
    PendingAction,
    State,
    ToolTraits,
    actions_to_confirm,
)
from perdure.agent.loop.status import TRUNCATED_REASON, Trigger
from perdure.agent.loop.stuck import add_recent
from perdure.agent.loop.transition import move_status
from perdure.agent.loop.view_size import update_view
from perdure.agent.loop.wait_changes import begin_wait, end_wait, keep_signal, wait_trigger
from perdure.agent.spec import Agent
from perdure.events.risk import Risk
from perdure.events.summary import EXIT_COMMAND, NO_RUN, EventSummary
from perdure.events.usage import Usage

MAX_SHOWN_SKILLS = 64
"""Newest skills that a conversation remembers to have shown."""

MAX_BILLS = 16
"""Models with a bill of their own; all others share one."""


def fold(state: State, summaries: list[EventSummary]) -> State:
    """Apply the events to the state; events that it already contains are skipped."""
    new = (digest for digest in summaries if digest.seq >= state.next_seq)
    return reduce(evolve, new, state)


def evolve(state: State, event: EventSummary) -> State:
    """Apply one event to the state.

    Raises ValueError where an event before it is missing.
    """
    if event.seq != state.next_seq:
        raise ValueError(f"event {event.seq} follows event {state.next_seq - 1}: one is missing")
    changes = update_view(state, event) | _add_usage(state, event)
    if state.spec is not None:
        changes["recent_events"] = add_recent(state.recent_events, event, state.spec.stuck)
    if event.state_keys:
        changes |= _name_values(state, event.seq, event.state_keys)
    if event.home is not None:
        changes |= {"files_seq": event.seq, "home": event.home}
    if state.fold_version != FOLD_VERSION:
        changes["fold_version"] = 0 if state.next_seq else FOLD_VERSION
    changes |= _apply(state, event)
    sha = extend_sha(state.sha, event.sha)
    return state.model_copy(update={"next_seq": event.seq + 1, "sha": sha, **changes})


def extend_sha(running_sha: str, sha: str) -> str:
    """Return the running hash over one more event, whose stored bytes have the hash `sha`."""
    return hashlib.sha256(f"{running_sha}{sha}".encode()).hexdigest()[:32]


def _apply(state: State, event: EventSummary) -> dict[str, Any]:
    match event.kind:
        case "MessageEvent":
            return _apply_message(state, event)
        case "SystemPromptEvent":
            traits = {name: getattr(event, name) or () for name in ToolTraits.model_fields}
            return {"prompt_seq": event.seq, "tool_traits": ToolTraits(**traits)}
        case "ActionEvent":
            return _add_pending(state, event)
        case "ObservationEvent" | "AgentErrorEvent" | "UserRejectObservation":
            return _remove_pending(state, event)
        case "SecurityAnalysisEvent" if event.value:
            return {"pending": tuple(_rate(action, event.value) for action in state.pending)}
        case "RecallEvent":
            skills = dict.fromkeys((*state.shown_skills, *(event.value or ())))
            return {"shown_skills": tuple(skills)[-MAX_SHOWN_SKILLS:]}
        case "CondensationRequest" if event.source == "user":
            return {"condense_reason": state.condense_reason or "user"}
        case "CondensationRequest":
            return {"condense_reason": "overflow", "overflows": state.overflows + 1}
        case "Condensation":
            return {"condense_reason": None}
        case "PauseEvent":
            return move_status(state, "pause")
        case "InterruptEvent":
            return _apply_interrupt(state, event)
        case "WaitEvent" | "QuestionEvent":
            return begin_wait(state, event)
        case "SignalEvent":
            return keep_signal(state, event)
        case "StuckEvent":
            return move_status(state, "stuck", f"{event.key}: {event.value}")
        case "ConversationErrorEvent":
            failed = move_status(state, "failure", f"{event.key}: {event.value}")
            return {**failed, "condense_reason": None, "overflows": 0}
        case "ConversationStateUpdateEvent":
            return _apply_update(state, event)
        case _:
            return {}


def _apply_interrupt(state: State, event: EventSummary) -> dict[str, Any]:
    suspended = event.key == "too_many_conversations"
    why = SUSPENDED_REASON if suspended else "interrupted by the user"
    moved = move_status(state, "interrupt", why)
    reason = None if state.condense_reason == "user" else state.condense_reason
    return {**moved, "finish_call_seq": None, "condense_reason": reason}


def _apply_message(state: State, event: EventSummary) -> dict[str, Any]:
    if event.source == "user":
        return _apply_user_message(state, event)
    if event.source == "environment":
        topics = (*state.warned_about, *([event.key] if event.key else []))
        return {"warned_about": tuple(dict.fromkeys(topics))}
    if event.key == "interrupted":
        return {}
    return _end_turn(state, None, TRUNCATED_REASON if event.value == "truncated" else None)


def _apply_user_message(state: State, event: EventSummary) -> dict[str, Any]:
    changes = {
        **move_status(state, _message_trigger(state, event)),
        "turn_open": True,
        "first_user_seq": event.seq if state.first_user_seq is None else state.first_user_seq,
        "last_user_seq": event.seq,
        "warned_about": (),
    }
    if state.status != "running":
        changes |= {"turn": state.turn + 1, "iterations": 0}
    if state.status == "idle":  # what it rests for is not the reason of before
        changes |= {"reason": None}
    if event.value == EXIT_COMMAND and state.status != "closed":
        changes |= _exit(state, event.seq)
    if event.message_id is not None:
        changes |= _remember_id(state, event.message_id, event.seq)
    return changes


def _message_trigger(state: State, event: EventSummary) -> Trigger:
    is_only_recorded = event.key == NO_RUN
    if event.value == "reopen" and state.status == "closed":
        return "reopen_at_rest" if is_only_recorded else "reopen"
    return "record" if is_only_recorded else "message"


def _remember_id(state: State, message_id: str, seq: int) -> dict[str, Any]:
    seqs, forgotten = remember_id(state.message_seqs, state.forgotten_ids, message_id, seq)
    return {"message_seqs": seqs, "forgotten_ids": forgotten}


def _exit(state: State, seq: int) -> dict[str, Any]:
    """End the turn as the agent's `finish` would: at once, or when its pending calls are done."""
    if not state.pending:
        return _end_turn(state.model_copy(update={"status": "running"}), "finish")
    return {"finish_call_seq": seq, "ending": "finish"}


def _end_turn(state: State, ending: Ending | None, reason: str | None = None) -> dict[str, Any]:
    moved = move_status(state, "answer", reason)
    over = {"turn_open": False, "finish_call_seq": None, "rejection_reason": None}
    return {**moved, **over, "ending": ending}


def _add_pending(state: State, event: EventSummary) -> dict[str, Any]:
    if event.is_error:  # not executable: its error follows
        return {}
    assert event.action_id is not None, "an action has an id"
    assert event.tool_name is not None, "an action names its tool"
    pending = PendingAction(
        seq=event.seq,
        action_id=event.action_id,
        tool_name=event.tool_name,
        tool_call_id=event.tool_call_id or "",
        response_id=event.llm_response_id or "",
        repeatable=event.tool_name in state.tool_traits.repeatable,
        preview=event.preview,
        resources=event.resources,
        risk=event.risk or "UNKNOWN",
    )
    return {"pending": (*state.pending, pending)}


def _remove_pending(state: State, event: EventSummary) -> dict[str, Any]:
    """Remove an answered action; once a response with a successful `finish` is done, end the turn.

    A message that came after the call of `finish` keeps the turn open: the agent must see it.
    """
    if state.wait is not None and state.wait.action_id == event.action_id:
        woken = end_wait(state, state.wait, event)
        return {**woken, **_remove_pending(state.model_copy(update=woken), event)}
    remaining = tuple(action for action in state.pending if action.action_id != event.action_id)
    finish_seq, ending = state.finish_call_seq, find_ending(event)
    if ending is not None:
        answered = (it.seq for it in state.pending if it.action_id == event.action_id)
        finish_seq = next(answered, finish_seq)
    changes = request_condensation(state, event) | ({"ending": ending} if ending else {})
    rejection = event.value if ending == "reject" else state.rejection_reason
    changes |= {"rejection_reason": rejection} if rejection else {}
    rests = event.key == NO_RUN and not remaining
    settled = _set_pending(state, remaining, "reject" if rests else "respond")
    unfinished = {**settled, **changes, "finish_call_seq": finish_seq}
    if remaining or finish_seq is None:
        return unfinished
    if state.last_user_seq > finish_seq:
        return {**unfinished, "finish_call_seq": None}
    reason = rejection if (ending or state.ending) == "reject" else None
    return {**changes, "pending": remaining, **_end_turn(state, ending or state.ending, reason)}


def _set_pending(
    state: State, pending: tuple[PendingAction, ...], trigger: Trigger = "respond"
) -> dict[str, Any]:
    """Set the pending actions; once none of them waits for confirmation, move the status."""
    changes = {"pending": pending}
    if actions_to_confirm(state.model_copy(update=changes)):
        return changes
    return {**changes, **move_status(state, trigger)}


def _rate(action: PendingAction, risks: dict[str, Risk]) -> PendingAction:
    return action.model_copy(update={"risk": risks.get(action.action_id, action.risk)})


def _mark(state: State, seqs: Collection[int], **changes: Any) -> tuple[PendingAction, ...]:
    """Return the pending actions, with the changes to those in the slots `seqs`."""
    return tuple(
        action.model_copy(update=changes) if action.seq in seqs else action
        for action in state.pending
    )


def _name_values(state: State, seq: int, keys: Mapping[str, bool]) -> dict[str, Any]:
    """Note in which slot each value is; a state that would grow too large names none any more."""
    named = {key: slot for key, slot in state.value_seqs.items() if key not in keys}
    named |= {key: seq for key, has_value in keys.items() if has_value}
    fits = all(len(key.encode()) <= MAX_NAMED_KEY_BYTES for key in keys)
    if state.has_unnamed_values or not fits or len(named) > MAX_NAMED_KEYS:
        return {"value_seqs": {}, "has_unnamed_values": True}
    return {"value_seqs": named}


def _add_usage(state: State, event: EventSummary) -> dict[str, Any]:
    """Add up usage; usage without a purpose counts as a response of the model."""
    bill = event.usage
    if bill is None:
        return {}
    key, bills = f"{bill.purpose or 'chat'} {bill.model}".rstrip(), state.usage_by_model
    if key not in bills and len(bills) >= MAX_BILLS:
        key = "others"
    spent = {
        "usage": state.usage + bill,
        "usage_by_model": {**bills, key: bills.get(key, Usage()) + bill},
    }
    if bill.purpose:
        return spent
    counts = {"iterations": state.iterations + 1, "response_count": state.response_count + 1}
    return {**spent, **counts, "last_usage": bill, "overflows": 0}


def _apply_update(state: State, event: EventSummary) -> dict[str, Any]:
    match event.key, event.value:
        case "opened", value:
            lost = _mark_lost_calls(state, value.get("resumed") or ())
            return {"run_id": value["run_id"], "pending": lost}
        case "spec", _:
            return _apply_spec(state, event)
        case "status", "resumed":
            trigger: Trigger = "resume" if state.turn_open else "rest"
            moved = move_status(state, wait_trigger(state.wait) if state.wait else trigger)
            return {**moved, "recent_events": (), "warned_about": ()}
        case "status", "waiting_for_confirmation":
            seqs = {action.seq for action in actions_to_confirm(state)}
            waiting = _mark(state, seqs, confirmation_requested=True)
            return {**move_status(state, "ask"), "pending": waiting}
        case "status", "closed":
            return move_status(state, "close")
        case "confirmed", actions:
            return _set_pending(state, _mark(state, actions, approved=True))
        case "repository", str(url):
            return {"repository": url}
        case "title", title:
            return {"title": title}
        case "repeated", {"message_id": str(message_id), "seq": int(seq)}:
            return _remember_id(state, message_id, seq)
        case "not_condensed", _ if state.condense_reason == "user":
            return {"condense_reason": None}
        case _:
            return {}


def _apply_spec(state: State, event: EventSummary) -> dict[str, Any]:
    """Put another spec in force; its policy may end the wait for confirmation."""
    new = {"spec": Agent.model_validate(event.value), "spec_seq": event.seq, "warned_about": ()}
    return {**new, **_set_pending(state.model_copy(update=new), state.pending)}


def _mark_lost_calls(state: State, resumed: Collection[int]) -> tuple[PendingAction, ...]:
    """Mark the calls of a running conversation that may have been lost with its workflow.

    `resumed` are delegations whose conversation goes on.
    """
    detail = "The conversation's workflow was lost while the call may have been running."
    if state.status == "running" and not actions_to_confirm(state):
        unsafe = {action.seq for action in state.pending if not action.repeatable}
        pending = _mark(state, unsafe, outcome_unknown=detail)
        state = state.model_copy(update={"pending": pending})
    return _mark(state, resumed, outcome_unknown=None)
