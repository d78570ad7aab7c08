"""The events of a discussion, which several agents share.

They stand in a log of their own, and never in that of a conversation: they are no member of the
union of `perdure.events.event`.
"""

import json
import re
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
)
from pydantic.alias_generators import to_camel

from perdure.events.base import Frozen

DISCUSSION_EVENT = "DiscussionEvent"

MODERATOR = "moderator"
SYSTEM = "system"

MAX_CONTENT_BYTES = 64 * 1024
"""Bytes of the content of an event; a longer text belongs in a file that the event names."""

DiscussionEventType: TypeAlias = Literal["INTENT", "SPEECH", "SUMMARY", "VOTE", "SYSTEM"]

_MOMENT = re.compile(
    r"([0-9]{4}(?:-[0-9]{2}){2}T[0-9]{2}(?::[0-9]{2}){2})(?:\.([0-9]{1,6}))?(?:Z|\+00:00)?"
)


def _to_milliseconds(value: Any) -> Any:
    """Write a UTC timestamp as `2024-12-23T12:30:00.000Z`; it may have no or other fractions."""
    match = _MOMENT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("a timestamp is in UTC, as 2024-12-23T12:30:00.000Z")
    return f"{match[1]}.{(match[2] or '').ljust(3, '0')[:3]}Z"


def _check_content(value: Any) -> Any:
    if len(content_text(value).encode(errors="replace")) > MAX_CONTENT_BYTES:
        raise ValueError(
            f"the content of an event has {MAX_CONTENT_BYTES:,} bytes at most: put it into a file, "
            "and name that"
        )
    return value


MillisecondTimestamp: TypeAlias = Annotated[str, BeforeValidator(_to_milliseconds)]
SessionId: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")
]
DiscussionEventId: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[!#-~]{1,128}$")]
Speaker: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[^\s\x00-\x1f][^\x00-\x1f]{0,127}$")
]
Content: TypeAlias = Annotated[
    str | dict[str, JsonValue] | list[JsonValue], AfterValidator(_check_content)
]


class EventMeta(BaseModel):
    """The metadata of an event; keys that are not known are kept as they are."""

    model_config = ConfigDict(
        frozen=True, extra="allow", alias_generator=to_camel, populate_by_name=True
    )

    phase: str | None = None
    round: int | None = None
    reply_to: str | None = None
    """The id of the event that this one answers."""
    tokens: int | None = None


class DiscussionEvent(Frozen):
    """A fact of a discussion: what an agent, the moderator or the system has put into its log.

    JSON has camelCase keys; both spellings are read.
    """

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    kind: Literal["DiscussionEvent"] = "DiscussionEvent"
    event_id: DiscussionEventId
    type: DiscussionEventType
    speaker: Speaker
    """The id of an agent or a person, `moderator`, or `system`."""
    content: Content
    timestamp: MillisecondTimestamp
    """UTC with milliseconds and `Z`."""
    session_id: SessionId
    sequence: int = Field(ge=1)
    """The position in the session, which grows by one from 1 on."""
    meta: EventMeta | None = None

    @property
    def text(self) -> str:
        """The content as text: JSON is written without blanks."""
        return content_text(self.content)

    @property
    def action(self) -> str | None:
        """The action that a SYSTEM event records, as `PHASE_TRANSITION`."""
        return str(self._system_field("action")) if self._system_field("action") else None

    @property
    def details(self) -> dict[str, Any]:
        """The details of the action of a SYSTEM event."""
        details = self._system_field("details")
        return details if isinstance(details, dict) else {}

    def to_json(self) -> dict[str, Any]:
        """Return the event as JSON with camelCase keys, without `kind` and absent fields."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"kind"})

    def _system_field(self, key: str) -> Any:
        is_action = self.type == "SYSTEM" and isinstance(self.content, dict)
        return self.content.get(key) if is_action and isinstance(self.content, dict) else None


class AgentVisibleEvent(Frozen):
    """The form in which agents see an event: without ids and numbers, and with a text."""

    type: DiscussionEventType
    speaker: str
    content: str
    timestamp: str

    @classmethod
    def from_event(cls, event: DiscussionEvent) -> Self:
        return cls(
            type=event.type,
            speaker=event.speaker,
            content=event.text,
            timestamp=event.timestamp,
        )


def content_text(content: JsonValue) -> str:
    """Return content as text: JSON as one line without blanks."""
    if isinstance(content, str):
        return content
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def system_content(action: str, **details: JsonValue) -> dict[str, JsonValue]:
    """Build the content of a SYSTEM event."""
    return {"action": action, "details": details}
