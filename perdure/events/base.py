"""The base of every event."""

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, StringConstraints

Source: TypeAlias = Literal["user", "agent", "environment"]

Timestamp: TypeAlias = Annotated[
    # Not \d, which matches the digits of every script.
    str, StringConstraints(pattern=r"^[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}\.[0-9]{6}$")
]
"""UTC, always 26 characters, so that strings sort as the moments do."""

MAX_NAME_BYTES = 128
"""Bytes of a name or an id: a longer one is cut, and stays distinct from all others."""

TIMESTAMP_FORMAT = "%Y-%m-%dT%H:%M:%S.%f"
UNASSIGNED_ID = ""  # of an event that has no slot in a log yet


class Frozen(BaseModel):
    """An immutable value; an undeclared field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Tolerant(Frozen):
    """An immutable value that ignores the fields of newer writers."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class EventBase(Frozen):
    """A fact about a conversation, written without its `id`, which follows from its slot."""

    id: str = UNASSIGNED_ID
    timestamp: Timestamp
    source: Source = "environment"

    def model_text(self) -> str:
        """Return what the model is shown of an event that is no message, call or result."""
        return ""

    def describe(self) -> tuple[str, str]:
        """Return who did it, and what, for a person; without a text the fields are shown."""
        return self.source, ""

    def export_note(self) -> str:
        """Return a sentence for exports in which the event is no message and no call."""
        return ""

    def state_changes(self) -> Mapping[str, Any]:
        """Return the new values of the session state, by key; None stands for a deleted one."""
        return {}

    def summary_fields(self) -> dict[str, Any]:
        """Return the fields of its EventSummary that workflows decide by."""
        return {}


class ActorEvent(EventBase):
    """A fact that somebody may have brought about: `actor` is the user, where that is known."""

    actor: str | None = None


def shorten_name(text: str) -> str:
    """Return the name, or if it is too long its beginning and a hash of all of it."""
    encoded = text.encode()
    if len(encoded) <= MAX_NAME_BYTES:
        return text
    return f"{encoded[:60].decode(errors='ignore')}…{hash_text(text)}"


def hash_text(text: str) -> str:
    """Return the first 16 hex digits of the text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
