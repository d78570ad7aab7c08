"""The requests and responses about conversations."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    JsonValue,
    StrictBool,
    Tag,
)

from perdure.agent.fields import find_unknown_field
from perdure.agent.loop.start import ConversationStatus
from perdure.agent.loop.status import Status
from perdure.agent.named import EXTENDS
from perdure.agent.spec import Agent
from perdure.agent.start_fields import StartFields
from perdure.api.json_object import JsonObject
from perdure.events.base import Frozen, Tolerant
from perdure.events.usage import Usage

MAX_REPLAYED_EVENTS = 20_000
MAX_TEXT_CHARS = 1_000_000
Text: TypeAlias = Annotated[str, Field(max_length=MAX_TEXT_CHARS)]
Id: TypeAlias = Annotated[str, Field(min_length=1, max_length=255)]
ConversationId: TypeAlias = Annotated[
    str, Field(pattern="^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
]
"""A UUID, in lower case and with its hyphens."""
MessageId: TypeAlias = Annotated[str, Field(pattern=r"^[ !#-\[\]-~]{1,128}$")]
"""ASCII characters, without quotes and backslashes."""
Image: TypeAlias = Annotated[str, Field(max_length=8_000_000, pattern=r"^(https?://|data:image/)")]
"""An http address, or `data:image/…` with the image itself."""
Slot: TypeAlias = Annotated[int, Field(ge=-1, le=2**53)]


def _refuse_unknown_fields(value: Any) -> Any:
    """Raise ValueError for a field that no agent has: agents of other versions may have some."""
    if isinstance(value, dict) and (problem := find_unknown_field(value)):
        raise ValueError(problem.sentence)
    return value


def _refuse_without_name(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Raise ValueError for fields that extend no named agent."""
    if not isinstance(value.get(EXTENDS), str):
        raise ValueError("name the agent that is extended: `extends` is a text")
    return value


def _kind_of_agent(value: Any) -> str:
    if isinstance(value, str):
        return "name"
    return "extension" if isinstance(value, Mapping) and EXTENDS in value else "agent"


WholeAgent: TypeAlias = Annotated[Agent, BeforeValidator(_refuse_unknown_fields)]
"""An agent of whose fields none is a typing mistake."""
AgentName: TypeAlias = Annotated[str, Field(min_length=1, max_length=128)]
AgentExtension: TypeAlias = Annotated[JsonObject, AfterValidator(_refuse_without_name)]
"""Fields that are stronger than those of the named agent that they extend."""
StartedAgent: TypeAlias = Annotated[
    Annotated[WholeAgent, Tag("agent")]
    | Annotated[AgentExtension, Tag("extension")]
    | Annotated[AgentName, Tag("name")],
    Discriminator(_kind_of_agent),
]


class Start(StartFields):
    """`POST /v1/conversations`: start a conversation; without `agent`, with the default agent.

    `text` is the first message; the same `conversation_id` and `message_id` again start nothing.
    The other fields are those of an agent, and are said over the one that is named or sent.
    """

    text: Text | None = None
    """The first message; without one, nor images, the agent waits for it."""
    agent: StartedAgent | None = None
    """The agent itself, its name, or `{"extends": NAME, …}`: a named one with other fields."""
    model: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    """The model of the agent, in place of the agent's own."""
    conversation_id: ConversationId | None = None
    message_id: MessageId | None = None
    images: Annotated[tuple[Image, ...], Field(max_length=20)] = ()
    title: Annotated[str, Field(max_length=200)] | None = None
    tags: Annotated[tuple[Annotated[str, Field(max_length=256)], ...], Field(max_length=50)] = ()
    replay: Annotated[tuple[JsonObject, ...], Field(max_length=MAX_REPLAYED_EVENTS)] | None = None
    """Events of another conversation: its answers come before those of the model, and its first
    message is sent where there is no text. Tools are called anew."""


class SendMessage(Frozen):
    """`POST …/messages`: send a message, and wait until it is in the log."""

    text: Text
    message_id: MessageId | None = None
    images: Annotated[tuple[Image, ...], Field(max_length=20)] = ()
    wait: StrictBool = True
    """Whether to wait until the message is in the log; without, Temporal has it."""
    reopen: StrictBool = False
    """Whether to open the conversation again if it is closed."""
    run: StrictBool = True
    """Whether an agent at rest runs; without, the message is only recorded until it is resumed."""


class Respond(Frozen):
    """`POST …/respond`: accept or reject the actions that wait for a person.

    It names `calls`, or `through`: nothing is accepted or rejected unseen.
    """

    accept: StrictBool
    calls: Annotated[tuple[Id, ...], Field(max_length=64)] = ()
    """The tool calls that are meant."""
    through: Annotated[Slot, Field(strict=True)] | None = None
    """The newest slot that the person has seen: all actions up to it are meant."""
    reason: Text = ""
    run: StrictBool = True
    """Whether the agent goes on after a rejection; without, it rests until it is resumed."""


class RespondResult(Tolerant):
    """The tool calls that a response has settled."""

    calls: tuple[str, ...]


class AskQuestion(Frozen):
    """`POST …/ask`: ask the agent beside the conversation, which has no event of it."""

    question: Text
    max_wait: Annotated[float, Field(strict=True, gt=0, le=600)] = 60.0


class ForkConversation(Frozen):
    """`POST …/fork`: make a conversation that shares the events up to slot `at`."""

    at: Annotated[int, Field(strict=True, ge=0, le=2**53)] | None = None
    model: Annotated[str, Field(min_length=1, max_length=255)] | None = None


class ForkResult(Tolerant):
    """The fork, and the last slot that it shares."""

    conversation_id: str
    at: int


class Configure(Frozen):
    """`POST …/configure`: change fields of the agent."""

    changes: JsonObject


class Note(Frozen):
    """`PATCH /v1/conversations/{id}`: change what is noted of the conversation."""

    title: Annotated[str, Field(max_length=200)] | None = None
    tags: (
        Annotated[tuple[Annotated[str, Field(max_length=256)], ...], Field(max_length=50)] | None
    ) = None
    state: JsonObject | None = None
    """Values of the session state by key, of which null deletes one."""
    versions: dict[str, Annotated[str, Field(max_length=256)]] | None = None
    """The versions of shared values, as `GET …/values` has them: others are not replaced (409)."""


class ShareConversation(Frozen):
    """`PUT …/grants/{user_id}`: let another user read, or also steer."""

    access: Literal["read", "write"] = "read"


class Grant(Tolerant):
    """The access of another user to a conversation or a batch."""

    user_id: str
    access: Literal["read", "write"]


class Grants(Tolerant):
    """The grants of a conversation or a batch, by user."""

    items: tuple[Grant, ...]


class ReopenResult(Tolerant):
    """The outcome of `POST …/reopen`: `reopened`, `running`, `at_rest`, `closed`, `delegated`
    or `damaged`; `reason` explains it."""

    outcome: str
    reason: str | None = None


class Values(Tolerant):
    """The values that are noted of a conversation; `user:` and `app:` values are shared."""

    values: dict[str, JsonValue]
    versions: dict[str, str] = Field(default_factory=dict)
    """The versions of the shared values, for a `PATCH` that replaces nothing newer."""


class Turn(Tolerant):
    """`GET …/turn`: the end of a turn; with `ended` false it goes on, and one may ask again.

    `text` is the agent's last message of the turn, or its report by `finish`. `usage` is that of
    the whole conversation. The events of the turn are those after slot `after_seq`.
    """

    conversation_id: str
    ended: bool
    after_seq: int
    status: Status
    reason: str | None = None
    text: str = ""
    usage: Usage = Usage()


class Conversation(Tolerant):
    """A conversation in the list, or by itself."""

    id: str
    owner: str
    access: Literal["owner", "read", "write"] = "owner"
    status: ConversationStatus
    state: dict[str, JsonValue] | None = None
    """The values of the session state, where they are asked for."""
    first_own_seq: int = 0
    """The first slot that is not one of a conversation which this one forks."""
    created: str | None = None
    updated: str | None = None


class Page(Tolerant):
    """A page of the list; `next_cursor` asks for the following one.

    A page may have fewer conversations than asked for, or none, and still a next one.
    """

    items: tuple[Conversation, ...]
    next_cursor: str | None = None


class EventPage(Tolerant):
    """Entries of the log in order; `end_seq` is the number of slots that the log has.

    Of the slots from `from_seq` to `through_seq` these are all entries that were asked for:
    the following page is after `through_seq`, or before `from_seq`.
    """

    items: tuple[dict[str, Any], ...]
    """Entries as stored, with `seq`."""
    from_seq: int
    through_seq: int
    end_seq: int
    has_more: bool
