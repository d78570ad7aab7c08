"""What every event has in common."""

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, StringConstraints

Source: TypeAlias = Literal["user", "agent", "environment"]

Timestamp: TypeAlias = Annotated[
    # Not \d, which is any digit of any script.
    str, StringConstraints(pattern=r"^[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}\.[0-9]{6}$")
]
"""UTC, always 26 characters, so that strings sort as the moments do."""

UNPLACED = ""
"""The id of an event that has no place in a log yet."""


class Frozen(BaseModel):
    """A value: it never changes, and a field nobody declared is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Tolerant(Frozen):
    """A value that a newer writer may have given fields which this version does not need."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class EventBase(Frozen):
    """A fact about a conversation, in the past tense.

    An event is written without its `id`: the id belongs to the slot that the log gives it.
    """

    id: str = UNPLACED
    timestamp: Timestamp
    source: Source
