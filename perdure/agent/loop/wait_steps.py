"""The beginnings and ends of waits: what is recorded of them, and when."""

from collections.abc import Iterator, Sequence

from perdure.agent.loop.inbox import (
    Answer,
    CloseRequest,
    InboxItem,
    InterruptRequest,
    RefusedInput,
    UserMessage,
    WaitEnd,
    WaitStart,
)
from perdure.agent.loop.state import WAITING_STATUSES, PendingAction, State

LATE_ANSWER = "An answer came to a question that waits for none any more: send it as a message."


def find_waiting_action(state: State) -> PendingAction | None:
    """Find the action whose wait has begun and not ended."""
    if state.wait is None:
        return None
    return next((it for it in state.pending if it.action_id == state.wait.action_id), None)


def start_or_skip_wait(state: State) -> WaitStart | WaitEnd | None:
    """Return the start of the wait that the first pending action asks for, if it does.

    A message that came after the call makes the wait pointless: the agent must see it.
    """
    action = state.pending[0]
    if action.tool_name not in state.tool_traits.suspending:
        return None
    if state.last_user_seq > action.seq:
        return WaitEnd(action=action.seq, ended_by="message", has_begun=False)
    return WaitStart(action=action.seq)


def end_wait_if_due(state: State, at: str | None) -> WaitEnd | None:
    """Return the end of a wait whose signal has come, or whose time has at `at` (UTC)."""
    action, wait = find_waiting_action(state), state.wait
    if action is None or wait is None or state.status not in WAITING_STATUSES:
        return None
    seqs = (signal.seq for signal in state.signals if signal.name == wait.signal)
    if (seq := next(seqs, None)) is not None:
        return WaitEnd(action=action.seq, ended_by="signal", signal_seq=seq)
    return WaitEnd(action=action.seq, ended_by="time") if wait.is_over(at) else None


def with_wait_ends(state: State, items: Sequence[InboxItem]) -> Iterator[InboxItem]:
    """Yield the items, and before a message that ends the wait its end.

    An answer to the question ends the wait itself, the first one counts, and no message beside it
    is taken for one. What stops the agent refuses all its calls. A message without `run` changes
    nothing.
    """
    ends = (Answer, InterruptRequest, CloseRequest)
    action = find_waiting_action(state)
    awaited = None if action is None else action.seq
    is_ended = any(isinstance(item, ends) for item in items)
    for item in items:
        if isinstance(item, Answer):
            yield item if item.action == awaited else RefusedInput(detail=LATE_ANSWER)
            awaited = None
            continue
        if isinstance(item, UserMessage) and item.run and awaited is not None and not is_ended:
            is_ended = True
            yield WaitEnd(action=awaited, ended_by="message")
        yield item
