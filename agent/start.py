"""What a conversation's workflow is started with, and what it answers."""

from agent.inbox import Item
from agent.spec import Spec
from agent.state import State
from agent.status import Status
from events.base import Frozen
from events.usage import Usage


class Start(Frozen):
    """`spec` begins a new conversation; without it one is opened again from its log.

    `state` and `inbox` are what an earlier run of the same workflow hands on.
    """

    conversation_id: str
    user_id: str
    spec: Spec | None = None
    state: State | None = None
    inbox: tuple[Item, ...] = ()


class Recorded(Frozen):
    """Where a message stands in the log."""

    seq: int
    event_id: str


class Snapshot(Frozen):
    """Where a conversation stands; `waiting` counts what the log does not hold yet."""

    conversation_id: str
    status: Status
    reason: str | None = None
    turn: int = 0
    iterations: int = 0
    next_seq: int = 0
    pending: tuple[str, ...] = ()
    waiting: int = 0
    spent: Usage = Usage()
    model: str | None = None


def snapshot(conversation_id: str, state: State, waiting: int = 0) -> Snapshot:
    return Snapshot(
        conversation_id=conversation_id,
        status=state.status,
        reason=state.reason,
        turn=state.turn,
        iterations=state.iterations,
        next_seq=state.next_seq,
        pending=tuple(one.tool_name for one in state.pending),
        waiting=waiting,
        spent=state.spent,
        model=state.spec.model.name if state.spec else None,
    )
