"""The values that the conversations of a user, or of all users, share: an object for each key.

A value is replaced only while it is the version that its writer has read (`If-Match`), so that
nobody overwrites what he has not seen. An object names the writes that made it, so that a step
which is tried again finds its own, and writes nothing twice. It may name those that were refused
as well, so that no attempt at a step writes what another one has failed with.
"""

import json
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Final

from perdure.agent.loop.scopes import find_key_error, parse_key
from perdure.errors import PerdureError
from perdure.storage.errors import Altered
from perdure.storage.keys import APP_STATE, user_state_prefix
from perdure.storage.store import Store

FORMAT = "perdure.shared_value.1"

MAX_KNOWN_WRITES = 32
"""The newest writes that an object names: a step that is tried again after so many others, which
all took place meanwhile, would write once more."""

MAX_KNOWN_WRITE_BYTES = 64 * 1024
"""Bytes of the named writes, above which the oldest are dropped."""

REFUSED: Final = "refused "
"""What begins the name of a write that was refused; its value is the version of the object that it
found, whose value it has left as it was. Older versions of perdure pass it by."""

ANY: Final = "*"
"""The version of a writer who replaces whatever there is."""

ABSENT: Final = ""
"""The version of a value that there is not."""


class StateConflict(PerdureError):
    """Somebody else has changed a shared value since its writer read it."""

    def __init__(self, key: str, value: Any) -> None:
        now = "it is deleted" if value is None else f"it is now {_shorten(value)}"
        super().__init__(f"{key} was changed by somebody else meanwhile: {now}. Read it again.")
        self.key = key
        self.value = value


@dataclass(frozen=True)
class SharedValue:
    """A shared value; None stands for none. `version` is what a writer names who has read it."""

    key: str
    value: Any
    version: str


@dataclass(frozen=True)
class _Write:
    id: str
    before: Any
    value: Any


@dataclass(frozen=True)
class _Stored:
    value: Any = None
    writes: list[_Write] = field(default_factory=list)
    version: str = ABSENT

    def find(self, write_id: str) -> _Write | None:
        return next((write for write in self.writes if write.id == write_id), None)

    def is_refused(self, write_id: str) -> bool:
        return self.find(REFUSED + write_id) is not None

    def versions(self) -> set[str]:
        """Return the versions of the object since its value last changed: a refusal makes one."""
        refusals = takewhile(lambda write: write.id.startswith(REFUSED), reversed(self.writes))
        return {self.version, *(refusal.value for refusal in refusals)}


def shared_key(user_id: str, key: str) -> str:
    """Return the key of the object of a shared value. Raises ValueError for an invalid key."""
    if wrong := find_key_error((key,)):
        raise ValueError(wrong)
    scope, name = parse_key(key)
    assert scope != "own", "a value of a conversation's own is in its log"
    prefix = user_state_prefix(user_id) if scope == "user" else APP_STATE
    return f"{prefix}{name}.json"


async def read_shared_value(
    store: Store, user_id: str, key: str, write_id: str = ""
) -> SharedValue:
    """Read a shared value as the step of `write_id` may see it: as it was before its own write.

    Raises Altered, StoreError, and ValueError for an invalid key.
    """
    stored = await _load(store, shared_key(user_id, key))
    if write_id and (own := stored.find(write_id)) is not None:
        return SharedValue(key, own.before, stored.version)
    return SharedValue(key, stored.value, stored.version)


async def write_shared_value(
    store: Store,
    user_id: str,
    key: str,
    value: Any,
    version: str,
    write_id: str,
    notes_refusal: bool = False,
) -> Any:
    """Write a shared value if it is still of this version, once for each `write_id`.

    None deletes it. Returns what is written, which an earlier attempt may have written otherwise.
    `notes_refusal` makes a refusal last: another attempt with a newer version is refused as well.
    Raises StateConflict, Altered, StoreError, and ValueError for an invalid key.
    """
    place = shared_key(user_id, key)
    while True:
        stored = await _load(store, place)
        if (own := stored.find(write_id)) is not None:
            return own.value
        is_current = version == ANY or version in stored.versions()
        if stored.is_refused(write_id) or not (is_current or notes_refusal):
            raise StateConflict(key, stored.value)
        if is_current:
            body = _encode(stored, value, _Write(write_id, stored.value, value))
        else:
            refusal = _Write(REFUSED + write_id, None, stored.version)
            body = _encode(stored, stored.value, refusal)
        if await _replace(store, place, body, stored.version) and is_current:
            return value


async def _replace(store: Store, place: str, body: bytes, version: str) -> bool:
    if version == ABSENT:
        return await store.create(place, body)
    return await store.replace_version(place, body, version)


async def _load(store: Store, place: str) -> _Stored:
    found = await store.read_version(place)
    if found is None:
        return _Stored()
    stored = _decode(place, found.body)
    return _Stored(stored.value, stored.writes, found.tag)


def _decode(place: str, body: bytes) -> _Stored:
    """Decode an object, of this version or of one that had the bare value. Raises Altered."""
    try:
        fields = json.loads(body)
        if not isinstance(fields, dict) or fields.get("format") != FORMAT:
            return _Stored(fields)
        return _Stored(fields["value"], [_Write(**write) for write in fields["writes"]])
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise Altered(place) from error


def _encode(stored: _Stored, value: Any, write: _Write) -> bytes:
    writes = [*stored.writes, write][-MAX_KNOWN_WRITES:]
    while len(writes) > 1 and len(_dump([vars(it) for it in writes])) > MAX_KNOWN_WRITE_BYTES:
        writes = writes[1:]
    fields = {"format": FORMAT, "value": value, "writes": [vars(write) for write in writes]}
    return _dump(fields)


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode(errors="replace")


def _shorten(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:199]}…"
