"""Requests to a conversation that its log does not hold yet."""

import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from perdure.events.base import Frozen
from perdure.events.images import STORED_IMAGE

MAX_MESSAGE_BYTES = 96 * 1024
"""Bytes of one message as JSON; longer text belongs in a file of the workspace."""

_MESSAGE_ID = re.compile(r"[ !#-\[\]-~]{1,128}")
"""ASCII of one byte a character in JSON: a state remembers many ids."""

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_IMAGE = re.compile(
    rf"https?://\S+|data:image/[a-z.+-]+;base64,[A-Za-z0-9+/=]+|{STORED_IMAGE.pattern}"
)


class UserMessage(Frozen):
    """A message of a user; `message_id` makes repeats harmless.

    `images` are URLs, or the keys of blobs of the conversation.
    """

    kind: Literal["message"] = "message"
    text: str
    images: tuple[str, ...] = ()
    message_id: str | None = None
    sender: str | None = None


class PauseRequest(Frozen):
    kind: Literal["pause"] = "pause"


class ResumeRequest(Frozen):
    kind: Literal["resume"] = "resume"


class InterruptRequest(Frozen):
    """Stop what is running, and wait for the user; `reason` is the limit that asks for it."""

    kind: Literal["interrupt"] = "interrupt"
    reason: Literal["too_many_conversations"] | None = None


class CondenseRequest(Frozen):
    kind: Literal["condense"] = "condense"


class CloseRequest(Frozen):
    kind: Literal["close"] = "close"


class Approval(Frozen):
    """A person's approval of the actions in these slots."""

    kind: Literal["approval"] = "approval"
    actions: tuple[int, ...]


class Rejection(Frozen):
    """A person's rejection of the actions in these slots."""

    kind: Literal["rejection"] = "rejection"
    actions: tuple[int, ...]
    reason: str


class SpecChange(Frozen):
    """New values for fields of the spec."""

    kind: Literal["spec_change"] = "spec_change"
    changes: dict[str, Any]


class StateNote(Frozen):
    """A note that steers nothing: the title, or values of the conversation's state."""

    kind: Literal["note"] = "note"
    key: Literal["title", "state"]
    value: Any


class TurnFailure(Frozen):
    """A failure that ends the turn; `detail` is a sentence that says what to do."""

    kind: Literal["failure"] = "failure"
    code: str
    detail: str


class RefusedInput(Frozen):
    """Input that was refused after the sender could be told."""

    kind: Literal["refusal"] = "refusal"
    detail: str


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
    | AgentWarning
    | StuckFinding
    | ConfirmationRequest,
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
