"""The state of a discussion, as far as its steps depend on it."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StringConstraints

from perdure.agent.discussion.spec import DiscussionKey, Outline
from perdure.agent.discussion.steps import Intent, LoggedContribution
from perdure.agent.discussion.tally import Tally
from perdure.events.base import Frozen
from perdure.events.discussion import DiscussionEventId

Stage: TypeAlias = Literal[
    "intents", "grants", "speeches", "vote", "tally", "summary", "transition", "prune", "over"
]

MAX_CONTRIBUTION_BYTES = 16 * 1024
MAX_WAITING_CONTRIBUTIONS = 50


class Contribution(Frozen):
    """A speech or a vote of a person; `id` makes repeats harmless."""

    type: Literal["SPEECH", "VOTE"] = "SPEECH"
    content: Annotated[str, StringConstraints(min_length=1, max_length=MAX_CONTRIBUTION_BYTES)]
    """The speech, or the ballot."""
    speaker: Annotated[str, StringConstraints(pattern=r"^[^\s\x00-\x1f][^\x00-\x1f]{0,127}$")]
    reply_to: DiscussionEventId | None = None
    reason: Annotated[str, StringConstraints(max_length=1000)] | None = None
    id: DiscussionEventId | None = None


class DiscussionState(Frozen):
    """The state of a discussion; only `evolve` makes a new one."""

    outline: Outline
    end: int
    """The newest event that a step of the workflow wrote."""
    step: int = 0
    """The steps that were taken."""
    stage: Stage = "intents"
    phase: int = 0
    round: int = 1
    intents: tuple[Intent, ...] = ()
    queue: tuple[str, ...] = ()
    """Those who have a grant and have not spoken yet."""
    last_granted: str | None = None
    consensus: bool = False
    ballots: dict[str, str] = Field(default_factory=dict)
    """Ballots of this vote, by voter."""
    tally: Tally | None = None
    summary: str | None = None
    speeches: dict[str, int] = Field(default_factory=dict)
    """Speeches by speaker."""
    seen: dict[str, int] = Field(default_factory=dict)
    """The newest event that each agent was shown."""
    begun: tuple[str, ...] = ()
    """Those whose conversation exists."""
    costs: dict[str, float] = Field(default_factory=dict)
    tokens: dict[str, int] = Field(default_factory=dict)
    people: tuple[str, ...] = ()
    contributed: dict[str, int] = Field(default_factory=dict)
    """The places of contributions that had an id."""
    logged: tuple[LoggedContribution, ...] = ()
    """What people contributed to an earlier run, which was lost, and no step has come to yet."""
    logged_end: int = 0
    """The end of the log when this run opened it: until there, steps find what they wrote."""
    ending: str | None = None
    """The reason why it ends before its last phase does."""

    @property
    def cost(self) -> float:
        return sum(self.costs.values())

    @property
    def turns(self) -> int:
        return sum(count for name, count in self.speeches.items() if name in self.outline.agents)


class DiscussionStart(Frozen):
    """The input of the workflow; `state` and what follows is handed on by an earlier run."""

    key: DiscussionKey
    searchable: bool = False
    model_queues: dict[str, str] | None = None
    max_run_events: int = 500
    state: DiscussionState | None = None
    inbox: tuple[Contribution, ...] = ()
    is_paused: bool = False
    started: str | None = None
    """When the first run began, as an ISO date and time."""


class DiscussionStatus(Frozen):
    """The public status, and the result once it is over."""

    session_id: str
    status: Literal["opening", "running", "paused", "finished", "closed", "failed"]
    reason: str | None = None
    phase: str | None = None
    round: int = 0
    speaking: tuple[str, ...] = ()
    """Those who take a turn now."""
    events: int = 0
    speeches: dict[str, int] = Field(default_factory=dict)
    tally: Tally | None = None
    summary: str | None = None
    """The last summary."""
    cost: float = 0.0
    tokens: int = 0
    log: str = ""
    """The prefix of the log in the store."""
