"""The input of a conversation's workflow, and its answers to clients."""

from pydantic import Field

from perdure.agent.loop.attempt import Attempt, AttemptSummary
from perdure.agent.loop.inbox import InboxItem
from perdure.agent.loop.phase import describe_phase, find_phase
from perdure.agent.loop.state import RunNotes, State, actions_to_confirm
from perdure.agent.loop.status import Status
from perdure.agent.loop.steps import Parent
from perdure.agent.spec import Agent
from perdure.events.base import Frozen
from perdure.events.risk import Risk
from perdure.events.status import Phase, StatusDetail
from perdure.events.summary import EventSummary
from perdure.events.usage import Usage

MAX_RUN_EVENTS = 500
"""History events of a run: another worker replays them well within a workflow task's timeout."""


class Start(Frozen):
    """The input of the workflow: a `spec` begins a conversation, None reopens one from its log."""

    conversation_id: str
    user_id: str
    spec: Agent | None = None
    parent: Parent | None = None
    """The conversation that delegated this one; the workflow ends with its first turn."""
    attempt: Attempt | None = None
    """The attempt of which this is the conversation; spec and first message come from the store."""
    discussion: str | None = None
    """The discussion in which this is an agent's turn; the workflow ends with that turn."""
    searchable: bool = False
    """Whether Temporal knows our search attributes; an unknown one would stop the workflow."""
    starts_running: bool = False
    """Whether the search attributes of the start say `running`, so that the workflow need not."""
    model_queues: dict[str, str] | None = None
    """The known queues of rate-limited models, by the model's name."""
    state: State | None = None
    """The state that an earlier run of the same workflow hands on, like `notes` and `inbox`."""
    notes: RunNotes = RunNotes()
    inbox: tuple[InboxItem, ...] = ()
    saved_seq: int | None = None
    """The slots that the state saved last covers, which an earlier run of the same workflow hands
    on; None where that was the state itself, as runs of before took for granted."""
    session_limit: int | None = Field(default=None, ge=1)
    """The number of its user's conversations that may work at once; None if it does not count."""
    admission_id: str | None = None
    """The admission that an earlier run of the same workflow hands on, like `active_at`."""
    active_at: str | None = None
    """When the user last said something, where that counts."""
    max_run_events: int = 1500
    """History events after which the run continues as new; starts of today set `MAX_RUN_EVENTS`.

    The default is the limit of runs that began before this was a field.
    """


class Delegation(Frozen):
    """The conversation that an action delegates to, or the results that the action already has."""

    start: Start | None = None
    results: tuple[EventSummary, ...] = ()


class RecordedMessage(Frozen):
    """The place of a message in the log."""

    seq: int
    event_id: str


class RecordedSignal(RecordedMessage):
    """The place of a signal in the log; `taken` says that an agent was waiting for it.

    Any other one is kept for the next wait of its name.
    """

    taken: bool


class PendingCall(Frozen):
    """An action without a result; `asks` says that it waits for a person."""

    seq: int
    tool_name: str
    tool_call_id: str
    risk: Risk
    asks: bool


class ConversationStatus(Frozen):
    """The public status of a conversation; `waiting` counts items that are not in the log yet."""

    conversation_id: str
    status: Status
    """What decides what may come next: `finished` says that the turn is over."""
    phase: Phase | None = None
    """What a person is told: more finely than `status`, also what lasts for a moment only; None
    from a worker or a gateway of before."""
    detail: StatusDetail | None = None
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
    workspace: str | None = None
    """A directory of the user's; None stands for a folder of the conversation's own."""
    tags: tuple[str, ...] = ()
    agent: str | None = None
    """The name of the agent."""
    app_name: str | None = None
    """The application that the conversation belongs to."""
    parent: str | None = None
    """The conversation from which this one was started, where its start names one."""
    hidden: bool = False
    """Whether lists leave the conversation out, unless they are asked for such ones."""
    trouble: str | None = None
    """The reason why the conversation is stalled, and what to do; only clients can find out."""
    scored: AttemptSummary | None = None
    """The result of an attempt."""


def build_status(conversation_id: str, state: State, waiting: int = 0) -> ConversationStatus:
    unconfirmed = {action.seq for action in actions_to_confirm(state)}
    shared = PendingCall.model_fields.keys() - {"asks"}
    return ConversationStatus(
        conversation_id=conversation_id,
        status=state.status,
        phase=find_phase(state),
        detail=describe_phase(state),
        reason=state.reason,
        title=state.title or None,
        turn=state.turn,
        iterations=state.iterations,
        next_seq=state.next_seq,
        shown=state.view_events,
        tokens=state.view_tokens,
        pending=tuple(
            PendingCall(**action.model_dump(include=shared), asks=action.seq in unconfirmed)
            for action in state.pending
        ),
        waiting=waiting,
        spent=state.usage,
        spent_on=state.usage_by_model,
        model=state.spec.model.name if state.spec else None,
        workspace=state.spec.workspace if state.spec else None,
        tags=state.spec.tags if state.spec else (),
        agent=state.spec.agent if state.spec else None,
        app_name=state.spec.app_name if state.spec else None,
        parent=state.spec.parent if state.spec else None,
        hidden=state.spec.hidden if state.spec else False,
    )
