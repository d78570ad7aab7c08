"""An event at its place in one conversation's log."""

import hashlib
import json
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict

from events.base import Tolerant
from events.event import AnyEvent, event_from, fields_of
from events.usage import Usage


class Origin(Tolerant):
    """Who wrote an event: the same on every retry, different for everything else.

    `position` counts the events that one activity wrote.
    """

    run: str
    activity: str
    position: int = 0


class Entry(BaseModel):
    """One object of the log: an event, its slot, its origin, and the bytes as they are stored.

    `usage` rides with the first event of a model's answer, so that the log alone knows the bill.
    """

    model_config = ConfigDict(frozen=True)

    seq: int
    event: AnyEvent
    origin: Origin
    usage: Usage | None = None
    body: bytes

    @cached_property
    def sha(self) -> str:
        """The SHA-256 of the stored bytes, first 32 hex digits."""
        return hashlib.sha256(self.body).hexdigest()[:32]


def entry(seq: int, event: AnyEvent, origin: Origin, usage: Usage | None = None) -> Entry:
    """The entry that puts `event` in slot `seq`.

    Half a surrogate pair, which a model's JSON can hold and UTF-8 cannot, becomes a question mark.
    """
    fields: dict[str, Any] = {"origin": origin.model_dump(), **fields_of(event)}
    if usage is not None:
        fields["usage"] = usage.model_dump(exclude_defaults=True)
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    try:
        body = text.encode()
    except UnicodeEncodeError:
        return entry_from(seq, text.encode(errors="replace"))
    return Entry(seq=seq, event=event, origin=origin, usage=usage, body=body)


def entry_from(seq: int, body: bytes) -> Entry:
    """The entry stored in slot `seq` as `body`.

    Raises ValueError where the bytes are not an event object with an origin: the slot is damaged.
    """
    fields = json.loads(body)
    if not isinstance(fields, dict):
        raise ValueError("an event must be a JSON object")
    origin = Origin.model_validate(fields.pop("origin", None))
    usage = Usage.model_validate(fields.pop("usage")) if "usage" in fields else None
    return Entry(seq=seq, event=event_from(fields), origin=origin, usage=usage, body=body)
