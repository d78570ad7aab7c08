"""The ids of OpenAI's objects, which follow from a conversation and its log alone."""

import hashlib
import re
from dataclasses import dataclass
from uuid import UUID

_CONVERSATION = re.compile(r"conv_([0-9a-f]{32})")
_RESPONSE = re.compile(r"resp_([0-9a-f]{32})_(0|[1-9][0-9]{0,5})")

APPROVAL_PREFIX = "mcpr_"


@dataclass(frozen=True)
class ResponseId:
    """The id of a response: its conversation, and the slot of its first event."""

    conversation_id: str
    seq: int

    def __str__(self) -> str:
        return f"resp_{_hex(self.conversation_id)}_{self.seq}"


def parse_response_id(text: str) -> ResponseId | None:
    """Parse the id of a response; None if it is none."""
    match = _RESPONSE.fullmatch(text)
    return ResponseId(str(UUID(match[1])), int(match[2])) if match else None


def format_conversation_id(conversation_id: str) -> str:
    return f"conv_{_hex(conversation_id)}"


def parse_conversation_id(text: str) -> str | None:
    """Return the id of a conversation of ours; None if it is none."""
    match = _CONVERSATION.fullmatch(text)
    return str(UUID(match[1])) if match else None


def format_item_id(prefix: str, *origin: str) -> str:
    """Return the id of an item of the log, by where its event comes from."""
    digest = hashlib.sha256("\0".join(origin).encode()).hexdigest()
    return f"{prefix}_{digest[:32]}"


def format_approval_id(call_id: str) -> str:
    return f"{APPROVAL_PREFIX}{call_id}"


def parse_approval_id(text: str) -> str | None:
    """Return the id of the tool call that an approval is asked for; None if it is none."""
    call_id = text.removeprefix(APPROVAL_PREFIX)
    return call_id if call_id and call_id != text else None


def _hex(conversation_id: str) -> str:
    return UUID(conversation_id).hex
