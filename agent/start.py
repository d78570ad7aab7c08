"""What a conversation's workflow is started with, and what it answers."""

from pydantic import Field

from agent.inbox import Item
from agent.spec import Spec
from agent.state import State, asking
from agent.status import Status
from agent.steps import Parent
from agent.trial import Scored, Trial
from events.base import Frozen
from events.digest import Digest
from events.risk import Risk
from events.usage import Usage


class Start(Frozen):
    """`spec` begins a new conversation; without it one is opened again from its log.

    `state` and `inbox` are what an earlier run of the same workflow hands on. `parent` delegated
    this conversation, whose workflow ends with its first turn; so does one that is a `trial`, which
    reads its spec and its first message from the store. `searchable` says that Temporal
    knows our search attributes; to name one that it does not know would stop the workflow. `lanes`
    are the queues of limited models that somebody knew of, by the model's name.
    """

    conversation_id: str
    user_id: str
    spec: Spec | None = None
    parent: Parent | None = None
    trial: Trial | None = None
    searchable: bool = False
    lanes: dict[str, str] | None = None
    state: State | None = None
    inbox: tuple[Item, ...] = ()


class Errand(Frozen):
    """The conversation that an action delegates to; or the answer that the action has already."""

    start: Start | None = None
    answered: tuple[Digest, ...] = ()


class Recorded(Frozen):
    """Where a message stands in the log."""

    seq: int
    event_id: str


class PendingCall(Frozen):
    """An action without an answer; `asks` says that it waits for a person."""

    seq: int
    tool_name: str
    tool_call_id: str
    risk: Risk
    asks: bool


class Snapshot(Frozen):
    """Where a conversation stands; `waiting` counts what the log does not hold yet.

    `trouble` says why it does not go on, and what to do; a workflow itself cannot know that.
    `scored` is what came of a trial.
    """

    conversation_id: str
    status: Status
    reason: str | None = None
    title: str | None = None
    turn: int = 0
    iterations: int = 0
    next_seq: int = 0
    shown: int = 0
    tokens: int = 0
    pending: tuple[PendingCall, ...] = ()
    waiting: int = 0
    spent: Usage = Usage()
    spent_on: dict[str, Usage] = Field(default_factory=dict)
    model: str | None = None
    tags: tuple[str, ...] = ()
    trouble: str | None = None
    scored: Scored | None = None


def snapshot(conversation_id: str, state: State, waiting: int = 0) -> Snapshot:
    asked = {one.seq for one in asking(state)}
    return Snapshot(
        conversation_id=conversation_id,
        status=state.status,
        reason=state.reason,
        title=state.title or None,
        turn=state.turn,
        iterations=state.iterations,
        next_seq=state.next_seq,
        shown=state.shown,
        tokens=state.tokens,
        pending=tuple(
            PendingCall(
                seq=one.seq,
                tool_name=one.tool_name,
                tool_call_id=one.tool_call_id,
                risk=one.risk,
                asks=one.seq in asked,
            )
            for one in state.pending
        ),
        waiting=waiting,
        spent=state.spent,
        spent_on=state.spent_on,
        model=state.spec.model.name if state.spec else None,
        tags=state.spec.tags if state.spec else (),
    )
