"""Requests to a conversation that its log does not hold yet."""

import operator
import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, JsonValue

from perdure.events.base import Frozen
from perdure.events.images import STORED_IMAGE
from perdure.events.trace_context import TRACEPARENT

MAX_MESSAGE_BYTES = 96 * 1024
"""Bytes of one message as JSON; longer text belongs in a file of the workspace."""

_MESSAGE_ID = re.compile(r"[ !#-\[\]-~]{1,128}")
"""ASCII of one byte a character in JSON: a state remembers many ids."""

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_IMAGE = re.compile(
    rf"https?://\S+|data:image/[a-z.+-]+;base64,[A-Za-z0-9+/=]+|{STORED_IMAGE.pattern}"
)


class ActorItem(Frozen):
    """Something that somebody asked for; `actor` is the user, as far as the request says."""

    actor: Annotated[str | None, Field(exclude_if=lambda actor: actor is None)] = None


class UserMessage(ActorItem):
    """A message of a user; `message_id` makes repeats harmless.

    `images` are URLs, or the keys of blobs of the conversation. With `reopen` it opens the
    conversation again where that is closed. Without `run` an agent at rest stays at rest until
    somebody resumes it, or says something more.
    """

    kind: Literal["message"] = "message"
    text: str
    images: tuple[str, ...] = ()
    message_id: str | None = None
    sender: str | None = None
    traceparent: Annotated[
        str | None,
        Field(pattern=f"^{TRACEPARENT.pattern}$", exclude_if=lambda span: span is None),
    ] = None
    """The sender's span, to which the trace of the turn is linked."""
    reopen: bool = Field(default=False, exclude_if=operator.not_)
    run: bool = Field(default=True, exclude_if=bool)


class PauseRequest(ActorItem):
    kind: Literal["pause"] = "pause"


class ResumeRequest(ActorItem):
    kind: Literal["resume"] = "resume"


class InterruptRequest(ActorItem):
    """Stop what is running, and wait for the user; `reason` is the limit that asks for it."""

    kind: Literal["interrupt"] = "interrupt"
    reason: Literal["too_many_conversations"] | None = None


class CondenseRequest(ActorItem):
    kind: Literal["condense"] = "condense"


class CloseRequest(ActorItem):
    kind: Literal["close"] = "close"


class Approval(ActorItem):
    """A person's approval of the actions in these slots."""

    kind: Literal["approval"] = "approval"
    actions: tuple[int, ...]


class Rejection(ActorItem):
    """A person's rejection of the actions in these slots; without `run` the agent then rests."""

    kind: Literal["rejection"] = "rejection"
    actions: tuple[int, ...]
    reason: str
    run: bool = Field(default=True, exclude_if=bool)


class Signal(ActorItem):
    """A signal by name, for a wait of now or of later; `signal_id` makes repeats harmless."""

    kind: Literal["signal"] = "signal"
    name: str
    data: JsonValue = None
    signal_id: str


class Answer(ActorItem):
    """A person's answer to the question of the action in this slot."""

    kind: Literal["answer"] = "answer"
    action: int
    text: str


class WaitStart(Frozen):
    """The start of the wait that the action in this slot asks for."""

    kind: Literal["wait_start"] = "wait_start"
    action: int


class WaitEnd(Frozen):
    """The end of the wait of the action in this slot, and of what it came by."""

    kind: Literal["wait_end"] = "wait_end"
    action: int
    ended_by: Literal["time", "signal", "message"]
    signal_seq: int | None = Field(default=None, exclude_if=lambda seq: seq is None)
    """The slot of the signal."""
    has_begun: bool = Field(default=True, exclude_if=bool)
    """False for a wait that a message makes pointless before it begins."""


class SpecChange(ActorItem):
    """New values for fields of the spec."""

    kind: Literal["spec_change"] = "spec_change"
    changes: dict[str, Any]


class StateNote(ActorItem):
    """A note that steers nothing: the title, values of the conversation's state, or what a client
    of OpenHands keeps beside it.
    """

    kind: Literal["note"] = "note"
    key: Literal["title", "state", "openhands"]
    value: Any
    versions: dict[str, str] | None = Field(default=None, exclude_if=operator.not_)
    """The versions of shared values that the writer has read: others are not replaced."""
    note_id: str | None = Field(default=None, exclude_if=operator.not_)
    """The id by which the writer learns that shared values were refused."""


class TurnFailure(Frozen):
    """A failure that ends the turn; `detail` is a sentence that says what to do."""

    kind: Literal["failure"] = "failure"
    code: str
    detail: str


class RefusedInput(Frozen):
    """Input that was refused after the sender could be told."""

    kind: Literal["refusal"] = "refusal"
    detail: str


class WebhookFailure(Frozen):
    """A webhook has not taken the event `event_id`; `reason` is that of the last attempt."""

    kind: Literal["webhook_failure"] = "webhook_failure"
    webhook_id: Annotated[str, Field(max_length=64)]
    event: Annotated[str, Field(max_length=64)]
    event_id: Annotated[str, Field(max_length=64)]
    reason: Annotated[str, Field(max_length=2000)]


class AgentWarning(Frozen):
    """A warning to the agent; `topic` is its reason."""

    kind: Literal["warning"] = "warning"
    topic: Literal["stuck", "limits"]
    text: str


class StuckFinding(Frozen):
    """The finding that the agent is stuck, with the range of events that show it."""

    kind: Literal["stuck"] = "stuck"
    pattern: str
    first_seq: int
    last_seq: int
    count: int


class ConfirmationRequest(Frozen):
    """The request that a person confirms the actions in these slots."""

    kind: Literal["confirmation_request"] = "confirmation_request"
    actions: tuple[int, ...]


InboxItem: TypeAlias = Annotated[
    UserMessage
    | PauseRequest
    | ResumeRequest
    | InterruptRequest
    | CondenseRequest
    | CloseRequest
    | Approval
    | Rejection
    | SpecChange
    | StateNote
    | TurnFailure
    | RefusedInput
    | WebhookFailure
    | AgentWarning
    | StuckFinding
    | ConfirmationRequest
    | Signal
    | Answer
    | WaitStart
    | WaitEnd,
    Field(discriminator="kind"),
]


def json_size(item: Frozen) -> int:
    """Return the size of a model as JSON, in bytes."""
    return len(item.model_dump_json().encode())


def find_message_error(message: UserMessage) -> str | None:
    """Return a sentence on what is wrong with the message, or None if it can be recorded."""
    if not message.text.strip() and not message.images:
        return "The message is empty: say what the agent should do."
    if _SURROGATE.search("".join((message.text, message.sender or "", *message.images))):
        return "The message holds half a surrogate pair: send the whole character, or none."
    if message.message_id is not None and not _MESSAGE_ID.fullmatch(message.message_id):
        return "A message_id has 1 to 128 ASCII characters, without quotes and backslashes."
    if not all(map(_IMAGE.fullmatch, message.images)):
        return "An image is an http address, or data:image/…;base64,… with the image itself."
    if (size := json_size(message)) > MAX_MESSAGE_BYTES:
        over = f"The message has {size:,} bytes and the limit is {MAX_MESSAGE_BYTES:,}: "
        if json_size(message.model_copy(update={"images": ()})) <= MAX_MESSAGE_BYTES:
            return f"{over}send its images by the client, which stores them beside the log."
        return f"{over}put the text in a file of the workspace and name the file."
    return None
