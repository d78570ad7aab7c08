"""The steps of a discussion, and the messages between its workflow and its activities."""

from typing import Any, Literal, TypeAlias
from uuid import UUID, uuid5

from pydantic import Field

from perdure.agent.discussion.pruning import AskedPolicy
from perdure.agent.discussion.spec import DiscussionKey, Outline
from perdure.agent.discussion.tally import Tally
from perdure.events.base import Frozen
from perdure.events.discussion import DiscussionEventType

IDS = UUID("6c1f4f0e-0d2b-5d0c-9a55-0b8a4f3f7a10")
"""The namespace of the ids that a discussion derives."""

DISCUSSION_TAG = "discussion:"
"""The beginning of the tag by which the conversation of an agent names its discussion."""

Request: TypeAlias = Literal["intent", "grants", "speech", "vote", "summary"]
"""What an agent, or the moderator's model, is asked in a turn."""


class Intent(Frozen):
    """An agent that wants to speak."""

    speaker: str
    urgency: int
    line: str


class Place(Frozen):
    """The phase and the round of a step: indices from 0 and from 1."""

    phase: int
    round: int


class TakeTurns(Frozen):
    """Let the speakers take a turn side by side, and record what they answer.

    `candidates` are the intents of a request for grants, and `most` is how many to grant.
    """

    number: int
    request: Request
    place: Place
    speakers: tuple[str, ...]
    candidates: tuple[Intent, ...] = ()
    most: int = 0


class Draft(Frozen):
    """An event to write; the log gives it its place, and the step and `nth` its id.

    `digest` makes the content of a SUMMARY from the events of the phase.
    """

    type: DiscussionEventType
    speaker: str
    content: Any = None
    meta: dict[str, Any] = Field(default_factory=dict)
    digest: bool = False


class Write(Frozen):
    """Write events whose content is known."""

    number: int
    place: Place
    drafts: tuple[Draft, ...]
    effect: Literal["grants", "tally", "summary", "transition", "contribution", "closed"]
    contribution: str | None = None
    """The id of what a person contributes."""


class Prune(Frozen):
    """Take events out of the readers' sight; none is newer than `through`."""

    number: int
    policy: AskedPolicy
    through: int


DiscussionStep: TypeAlias = TakeTurns | Write | Prune


class OpenDiscussion(Frozen):
    """Write the event that names the topic and the agents."""

    key: DiscussionKey


class PrepareTurn(Frozen):
    """Build the start of the conversation in which an agent takes a turn.

    `seen` is the newest event that it was shown before, `through` the newest that it may be shown,
    and `begun` says whether its conversation exists.
    """

    key: DiscussionKey
    step: TakeTurns
    speaker: str
    seen: int
    through: int
    begun: bool
    searchable: bool = False
    model_queues: dict[str, str] | None = None


class RecordTurns(Frozen):
    """Write what the agents answered behind slot `after`; `failures` says who gave no answer."""

    key: DiscussionKey
    step: TakeTurns
    after: int
    failures: dict[str, str] = Field(default_factory=dict)


class RecordEvents(Frozen):
    """Write the drafts behind slot `after`."""

    key: DiscussionKey
    step: Write
    after: int


class PruneEvents(Frozen):
    key: DiscussionKey
    step: Prune


class Answer(Frozen):
    """The outcome of an agent's turn; `failure` says why the agent is passed over."""

    speaker: str
    failure: str | None = None
    intent: Intent | None = None
    ballot: str | None = None
    granted: tuple[str, ...] = ()
    consensus: bool = False
    spoke: bool = False
    begun: bool = False
    """Its conversation exists."""
    cost: float = 0.0
    """US dollars of its conversation so far."""
    tokens: int = 0


class LoggedContribution(Frozen):
    """A contribution of a person, as the log has it; a speech is without its text."""

    sequence: int
    type: Literal["SPEECH", "VOTE"]
    speaker: str
    ballot: str = ""
    phase: str | None = None
    """The phase in which it was contributed."""
    id: str | None = None
    """The id by which a repeat of it is known."""


class OpenedDiscussion(Frozen):
    """The outline of the spec, and the newest event that the opening wrote.

    `logged` and `log_end` are what an earlier run, which was lost, has left in the log.
    """

    outline: Outline
    end: int
    logged: tuple[LoggedContribution, ...] = ()
    log_end: int = 0


class RecordResult(Frozen):
    """The newest event after a step, what the agents answered, and the summary if it made one."""

    end: int
    answers: tuple[Answer, ...] = ()
    summary: str | None = None
    first: int = 0
    """The place of the first event that the step wrote; 0 if it wrote none."""
    sequence: int = 0
    """The place of the last event that the step wrote."""
    tally: Tally | None = None
    """The tally that the log has, which an earlier run may have written."""


def step_event_id(key: DiscussionKey, step: str, nth: int) -> str:
    """Return the id of the nth event of a step, the same whenever the step is repeated."""
    return str(uuid5(IDS, f"{key.user_id}/{key.session_id}/{step}/{nth}"))


def step_name(step: TakeTurns | Write) -> str:
    """Return the name of a step among all steps of its discussion.

    What a person contributes has a name of its own, whenever it comes: a workflow that is started
    again, as it was lost, gives every other step the same name as before.
    """
    if isinstance(step, TakeTurns):
        return f"{step.number} {step.request}"
    return (
        f"contribution {step.contribution}" if step.contribution else f"{step.number} {step.effect}"
    )


def speaker_conversation_id(key: DiscussionKey, speaker: str) -> str:
    """Return the id of the conversation in which an agent, or the moderator, takes its turns."""
    return str(uuid5(IDS, f"{key.user_id}/{key.session_id}/{speaker}"))


def turn_message_id(step: int) -> str:
    """Return the id of the message that asks for an answer, so that it is never asked twice."""
    return f"discussion step {step}"
