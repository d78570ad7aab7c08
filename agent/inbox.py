"""What people have asked of a conversation and the log does not hold yet."""

import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from events.base import Frozen

MAX_MESSAGE = 96 * 1024
"""Bytes of one message as JSON. What is longer belongs in a file of the workspace."""

_MESSAGE_ID = re.compile(r"[ !#-\[\]-~]{1,128}")
"""ASCII that takes one byte a character in JSON: a state remembers many of them."""

_IMAGE = re.compile(r"https?://\S+|data:image/[a-z.+-]+;base64,[A-Za-z0-9+/=]+")


class Said(Frozen):
    """A message; `message_id` makes a repeat harmless. `images` are URLs, also with the data."""

    kind: Literal["said"] = "said"
    text: str
    images: tuple[str, ...] = ()
    message_id: str | None = None
    sender: str | None = None


class PauseAsked(Frozen):
    kind: Literal["pause_asked"] = "pause_asked"


class ResumeAsked(Frozen):
    kind: Literal["resume_asked"] = "resume_asked"


class InterruptAsked(Frozen):
    """What runs is to be stopped, and the agent to wait for its user."""

    kind: Literal["interrupt_asked"] = "interrupt_asked"


class CondenseAsked(Frozen):
    kind: Literal["condense_asked"] = "condense_asked"


class CloseAsked(Frozen):
    kind: Literal["close_asked"] = "close_asked"


class Confirmed(Frozen):
    """A person lets the actions in these slots happen."""

    kind: Literal["confirmed"] = "confirmed"
    actions: tuple[int, ...]


class Rejected(Frozen):
    """A person does not let the actions in these slots happen."""

    kind: Literal["rejected"] = "rejected"
    actions: tuple[int, ...]
    reason: str


class Configured(Frozen):
    """Fields of the spec that are to have other values from now on."""

    kind: Literal["configured"] = "configured"
    changes: dict[str, Any]


class Noted(Frozen):
    """Something about the conversation that steers nothing: its title, its state."""

    kind: Literal["noted"] = "noted"
    key: Literal["title", "state"]
    value: Any


class Failed(Frozen):
    """The turn cannot go on; `detail` is a sentence that says what to do."""

    kind: Literal["failed"] = "failed"
    code: str
    detail: str


class Refused(Frozen):
    """Something that was sent is not taken in; the sender could not be told directly."""

    kind: Literal["refused"] = "refused"
    detail: str


class Nudged(Frozen):
    """What the system has to tell the agent, and about what."""

    kind: Literal["nudged"] = "nudged"
    topic: Literal["stuck", "limits"]
    text: str


class FoundStuck(Frozen):
    """The agent goes in circles; these events show it."""

    kind: Literal["found_stuck"] = "found_stuck"
    pattern: str
    first_seq: int
    last_seq: int
    count: int


class ConfirmationAsked(Frozen):
    """The actions in these slots wait for a person."""

    kind: Literal["confirmation_asked"] = "confirmation_asked"
    actions: tuple[int, ...]


Item: TypeAlias = Annotated[
    Said
    | PauseAsked
    | ResumeAsked
    | InterruptAsked
    | CondenseAsked
    | CloseAsked
    | Confirmed
    | Rejected
    | Configured
    | Noted
    | Failed
    | Refused
    | Nudged
    | FoundStuck
    | ConfirmationAsked,
    Field(discriminator="kind"),
]


def weight(item: Frozen) -> int:
    """Bytes of an item, or of anything else, as JSON."""
    return len(item.model_dump_json().encode())


def fault(message: Said) -> str | None:
    """What is wrong with a message, in a sentence; none: it can be recorded."""
    if not message.text.strip() and not message.images:
        return "The message is empty: say what the agent should do."
    if not _encodable("".join((message.text, message.sender or "", *message.images))):
        return "The message holds half a surrogate pair: send the whole character, or none."
    if message.message_id is not None and not _MESSAGE_ID.fullmatch(message.message_id):
        return "A message_id has 1 to 128 ASCII characters, without quotes and backslashes."
    if not all(map(_IMAGE.fullmatch, message.images)):
        return "An image is an http address, or data:image/…;base64,… with the image itself."
    size = weight(message)
    if size > MAX_MESSAGE:
        return (
            f"The message has {size:,} bytes and the limit is {MAX_MESSAGE:,}: "
            "put the text in a file of the workspace and name the file."
        )
    return None


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
