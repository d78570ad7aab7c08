"""An event at its place in one conversation's log."""

import hashlib
import json
import re
from functools import cached_property
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from perdure.events.base import Tolerant
from perdure.events.event import AnyEvent, dump_event, parse_event
from perdure.events.nesting import exceeds_depth
from perdure.events.usage import Usage

ENTRY_PREFIX = b'{"origin":{'
_HEAD = re.compile(rb'\{"origin":\{"checksum":"([0-9a-f]{32})","after":"([0-9a-f]*)",')
_DECODER = json.JSONDecoder(parse_constant=str)  # `json.loads` would make one for each entry
MAX_EVENT_DEPTH = 256  # pydantic writes no more than 255 levels


class Origin(Tolerant):
    """The writer of an event: the same on every retry, different for everything else.

    `position` counts the events of one activity.
    """

    run: str
    activity: str
    position: int = 0


class Files(Tolerant):
    """The key of the newest `snapshot`, and the `home` queue of the workers that have the files."""

    home: str
    snapshot: str | None = None
    fault: str | None = None
    """The reason why the changes since that snapshot could not be saved."""
    left_out: dict[str, str] = Field(default_factory=dict)
    """Paths that are not in the snapshot, with the reason; ten at most."""


class _Parsed:
    """The mark of a field whose value is parsed already: its validator is not built once more."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.any_schema()


class Entry(BaseModel):
    """An object of the log: an event, its slot, its origin, and its bytes as stored."""

    model_config = ConfigDict(frozen=True)

    seq: int
    event: Annotated[AnyEvent, _Parsed]
    origin: Origin
    usage: Usage | None = None
    """The usage of a model's response, with its first event: the log alone has the bill."""
    files: Files | None = None
    """The place of the files, with the result of an action that moved or changed them."""
    body: bytes
    previous_sha: str = ""
    """The `sha` of the entry in the slot before, if the writer knew it."""

    @cached_property
    def sha(self) -> str:
        """The SHA-256 of the stored bytes, first 32 hex digits."""
        return hashlib.sha256(self.body).hexdigest()[:32]


def make_entry(
    seq: int,
    event: AnyEvent,
    origin: Origin,
    usage: Usage | None = None,
    files: Files | None = None,
) -> Entry:
    """Make the entry that puts `event` in slot `seq`.

    Half a surrogate pair, which a model's JSON can hold and UTF-8 cannot, becomes a question mark.
    """
    fields: dict[str, Any] = {"origin": origin.model_dump(), **dump_event(event)}
    if usage is not None:
        fields["usage"] = usage.model_dump(exclude_defaults=True)
    if files is not None:
        fields["files"] = files.model_dump(exclude_defaults=True)
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    try:
        body = text.encode()
    except UnicodeEncodeError:
        return parse_entry(seq, text.encode(errors="replace"))
    return Entry(seq=seq, event=event, origin=origin, usage=usage, files=files, body=body)


def add_checksum(entry: Entry, previous_sha: str = "") -> Entry:
    """Add a checksum over the slot and all bytes, and the sha of the previous entry.

    Both stand within `origin`, where readers of older versions ignore them.
    """
    assert entry.body.startswith(ENTRY_PREFIX), "a stored entry begins with its origin"
    parts = (ENTRY_PREFIX, previous_sha.encode(), entry.body.removeprefix(ENTRY_PREFIX))
    blank = b'%b"checksum":"","after":"%b",%b' % parts
    body = blank.replace(b'"checksum":""', b'"checksum":"%b"' % _checksum(entry.seq, blank), 1)
    return entry.model_copy(update={"body": body, "previous_sha": previous_sha})


def parse_entry(seq: int, body: bytes) -> Entry:
    """Parse the entry stored in slot `seq` as `body`.

    Raises ValueError if the bytes are not an event object with an origin, or do not match their
    checksum: the slot is damaged. An entry of an older version has no checksum.
    """
    fields = _parse_fields(body)
    origin_fields = fields.pop("origin", None)
    origin = Origin.model_validate(origin_fields)
    if "checksum" in origin_fields or "after" in origin_fields:
        stated = origin_fields.get("checksum")
        field = b'"checksum":"%b"' % str(stated).encode(errors="replace")
        # Quotes within strings are escaped: the first match is the field itself.
        if _checksum(seq, body.replace(field, b'"checksum":""', 1)).decode() != stated:
            raise ValueError("the bytes are not those that the checksum was made of")
    usage = Usage.model_validate(fields.pop("usage")) if "usage" in fields else None
    files = Files.model_validate(fields.pop("files")) if "files" in fields else None
    return Entry(
        seq=seq,
        event=parse_event(fields),
        origin=origin,
        usage=usage,
        files=files,
        body=body,
        previous_sha=origin_fields.get("after", ""),
    )


def read_previous_sha(seq: int, body: bytes) -> str | None:
    """Return the sha of the entry before the one stored in slot `seq` as `body`, without parsing.

    None where the bytes do not begin as `add_checksum` writes them, or do not match their checksum.
    """
    head = _HEAD.match(body)
    if head is None or _checksum(seq, body.replace(head[1], b"", 1)) != head[1]:
        return None
    return head[2].decode()


def _parse_fields(body: bytes) -> dict[str, Any]:
    text = body.decode()
    try:
        fields = _DECODER.decode(text)
    except RecursionError as error:
        raise ValueError("an event must be flatter") from error
    if not isinstance(fields, dict):
        raise ValueError("an event must be a JSON object")
    brackets = text.count("[") + text.count("{")
    if brackets > MAX_EVENT_DEPTH and exceeds_depth(fields, MAX_EVENT_DEPTH):
        raise ValueError("an event must be flatter")
    if "\\ud" in text or "\\uD" in text:
        json.dumps(fields, ensure_ascii=False).encode()  # half a surrogate pair is a ValueError
    return fields


def _checksum(seq: int, blank: bytes) -> bytes:
    return hashlib.sha256(b"%d\n%b" % (seq, blank)).hexdigest()[:32].encode()
