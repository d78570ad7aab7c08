"""What people have asked of a conversation and the log does not hold yet."""

import re
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from events.base import Frozen

MAX_MESSAGE = 96 * 1024
"""Bytes of one message as JSON. What is longer belongs in a file of the workspace."""

_MESSAGE_ID = re.compile(r"[ !#-\[\]-~]{1,128}")
"""ASCII that takes one byte a character in JSON: a state remembers many of them."""


class Said(Frozen):
    """A message; `message_id` makes a repeat harmless."""

    kind: Literal["said"] = "said"
    text: str
    message_id: str | None = None
    sender: str | None = None


class PauseAsked(Frozen):
    kind: Literal["pause_asked"] = "pause_asked"


class ResumeAsked(Frozen):
    kind: Literal["resume_asked"] = "resume_asked"


class CloseAsked(Frozen):
    kind: Literal["close_asked"] = "close_asked"


class Failed(Frozen):
    """The turn cannot go on; `detail` is a sentence that says what to do."""

    kind: Literal["failed"] = "failed"
    code: str
    detail: str


class Refused(Frozen):
    """Something that was sent is not taken in; the sender could not be told directly."""

    kind: Literal["refused"] = "refused"
    detail: str


Item: TypeAlias = Annotated[
    Said | PauseAsked | ResumeAsked | CloseAsked | Failed | Refused, Field(discriminator="kind")
]


def weight(item: Item) -> int:
    """Bytes of the item as JSON."""
    return len(item.model_dump_json().encode())


def fault(message: Said) -> str | None:
    """What is wrong with a message, in a sentence; none: it can be recorded."""
    if not message.text.strip():
        return "The message is empty: say what the agent should do."
    if not _encodable(message.text + (message.sender or "")):
        return "The message holds half a surrogate pair: send the whole character, or none."
    if message.message_id is not None and not _MESSAGE_ID.fullmatch(message.message_id):
        return "A message_id has 1 to 128 ASCII characters, without quotes and backslashes."
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
