"""An event at its place in one conversation's log."""

import hashlib
import json
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict

from events.base import Tolerant
from events.depth import is_deeper
from events.event import AnyEvent, event_from, fields_of
from events.files import Files
from events.usage import Usage

HEAD = b'{"origin":{'
"""How the bytes of every entry begin."""

DEEPEST = 256
"""Lists and objects in each other; pydantic writes no more than 255."""


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
    `files` rides with the answer to an action after which they are elsewhere, or others.
    `after` is the `sha` of the entry in the slot before, where the writer knew it.
    """

    model_config = ConfigDict(frozen=True)

    seq: int
    event: AnyEvent
    origin: Origin
    usage: Usage | None = None
    files: Files | None = None
    body: bytes
    after: str = ""

    @cached_property
    def sha(self) -> str:
        """The SHA-256 of the stored bytes, first 32 hex digits."""
        return hashlib.sha256(self.body).hexdigest()[:32]


def entry(
    seq: int,
    event: AnyEvent,
    origin: Origin,
    usage: Usage | None = None,
    files: Files | None = None,
) -> Entry:
    """The entry that puts `event` in slot `seq`.

    Half a surrogate pair, which a model's JSON can hold and UTF-8 cannot, becomes a question mark.
    """
    fields: dict[str, Any] = {"origin": origin.model_dump(), **fields_of(event)}
    if usage is not None:
        fields["usage"] = usage.model_dump(exclude_defaults=True)
    if files is not None:
        fields["files"] = files.model_dump(exclude_defaults=True)
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    try:
        body = text.encode()
    except UnicodeEncodeError:
        return entry_from(seq, text.encode(errors="replace"))
    return Entry(seq=seq, event=event, origin=origin, usage=usage, files=files, body=body)


def checked(plain: Entry, after: str = "") -> Entry:
    """The entry with a checksum over its slot and all its bytes, behind the one whose sha is given.

    Both stand within `origin`, where a reader of an older version passes over them.
    """
    assert plain.body.startswith(HEAD), "a stored entry begins with its origin"
    blank = b'%b"checksum":"","after":"%b",%b' % (HEAD, after.encode(), plain.body[len(HEAD) :])
    body = blank.replace(b'"checksum":""', b'"checksum":"%b"' % _checksum(plain.seq, blank), 1)
    return plain.model_copy(update={"body": body, "after": after})


def entry_from(seq: int, body: bytes) -> Entry:
    """The entry stored in slot `seq` as `body`.

    Raises ValueError where the bytes are not an event object with an origin, or not those that its
    checksum was made of: the slot is damaged. An entry of an older version has no checksum.
    """
    fields = _fields(body)
    written = fields.pop("origin", None)
    origin = Origin.model_validate(written)
    if "checksum" in written or "after" in written:
        _check(seq, body, written.get("checksum"))
    usage = Usage.model_validate(fields.pop("usage")) if "usage" in fields else None
    files = Files.model_validate(fields.pop("files")) if "files" in fields else None
    return Entry(
        seq=seq,
        event=event_from(fields),
        origin=origin,
        usage=usage,
        files=files,
        body=body,
        after=written.get("after", ""),
    )


def _fields(body: bytes) -> dict[str, Any]:
    text = body.decode()
    try:
        fields = json.loads(text, parse_constant=str)
    except RecursionError as error:
        raise ValueError("an event must be flatter") from error
    if not isinstance(fields, dict):
        raise ValueError("an event must be a JSON object")
    if text.count("[") + text.count("{") > DEEPEST and is_deeper(fields, DEEPEST):
        raise ValueError("an event must be flatter")
    if "\\ud" in text or "\\uD" in text:
        json.dumps(fields, ensure_ascii=False).encode()  # half a surrogate pair is a ValueError
    return fields


def _check(seq: int, body: bytes, stated: Any) -> None:
    field = b'"checksum":"%b"' % str(stated).encode(errors="replace")
    # A quote within a string is escaped: the first place that looks so is the field itself.
    if _checksum(seq, body.replace(field, b'"checksum":""', 1)).decode() != stated:
        raise ValueError("the bytes are not those that the checksum was made of")


def _checksum(seq: int, blank: bytes) -> bytes:
    return hashlib.sha256(b"%d\n%b" % (seq, blank)).hexdigest()[:32].encode()
