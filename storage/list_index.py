"""The index of a user's conversations: their summaries, as they came to rest last.

Lists are quick by it, and right without it: it is made of the logs, and `reindex` makes it anew.
Each of its objects holds some summaries, a line each, and is written once. Of two summaries of one
conversation the one of more events counts, so that objects can be written, merged and deleted in
any order. A summary of a conversation that went on since is no longer current: see `is_current`.
Of all lines a list needs the order and the filters, and of few the whole summary, so that only
these are decoded: a user may have tens of thousands.
"""

import asyncio
import json
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple
from uuid import uuid4

from pydantic_core import from_json

from perdure.events.usage import Usage
from perdure.storage import keys
from perdure.storage.cache import Cache
from perdure.storage.errors import StoreRefused, StoreUnavailable
from perdure.storage.store import Store, list_keys
from perdure.storage.summary import Summary, find_trouble

MAX_SMALL_OBJECTS = 16
"""Small objects of an index, above which a reader merges them into one."""

SMALL_OBJECT = 1000
"""Summaries of an object, below which it is small."""

RUNNING = "running"
MAX_CACHED_SUMMARIES = 200_000


class LineFields(NamedTuple):
    """The fields of a summary that order and filter lists."""

    events: int
    is_lasting: bool
    last_event: str | None
    agent: str | None
    app: str | None
    is_hidden: bool


class IndexLine:
    """A summary in an index, as JSON; it is parsed when something of it is asked for."""

    def __init__(self, id: str, body: bytes) -> None:
        self.id = id
        self.body = body

    @cached_property
    def fields(self) -> LineFields | None:
        """The fields by which lists are ordered and filtered; None in a line that is damaged."""
        return _parse_fields(self.body)

    @property
    def is_lasting(self) -> bool:
        return self.fields is not None and self.fields.is_lasting

    def decode(self) -> Summary | None:
        """Decode the summary; None if it is damaged, or lacks what this version needs."""
        try:
            values: dict[str, Any] = {
                name: value for name, value in from_json(self.body).items() if name in _FIELDS
            }
            values |= {name: tuple(values[name]) for name in _TUPLES}
            values["usage"] = Usage.model_validate(values["usage"])
            return Summary(**values)
        except (ValueError, TypeError, LookupError):
            return None


@dataclass(frozen=True)
class ListIndex:
    """The stored index of a user: its objects, and the newest lines by conversation."""

    objects: dict[str, tuple[IndexLine, ...]] = field(default_factory=dict)

    def merge(self) -> dict[str, IndexLine]:
        return _merge(line for part in self.objects.values() for line in part)


class IndexCache(Cache[str, tuple[IndexLine, ...]]):
    """The objects that were read last, by their keys: they never change."""

    def __init__(self) -> None:
        super().__init__(MAX_CACHED_SUMMARIES, lambda part: len(part) + 1)


async def load_index(
    store: Store, user_id: str, cache: IndexCache | None = None, max_objects: int = sys.maxsize
) -> ListIndex:
    """Load a user's index; an empty one if it was lost, or has more objects. Raises StoreError."""
    cache = cache or IndexCache()
    while True:
        names = [key async for key in list_keys(store, keys.index_prefix(user_id))]
        if len(names) > max_objects:
            return ListIndex()
        parts = await asyncio.gather(*(_load_part(store, name, cache) for name in names))
        loaded = {name: part for name, part in zip(names, parts, strict=True) if part is not None}
        if len(loaded) == len(names):
            return ListIndex(loaded)
        # Somebody has merged objects in between: what they held is in a new one.


async def add_to_index(store: Store, user_id: str, summaries: Iterable[Summary]) -> str | None:
    """Write summaries into the index, as one object, and return its key; None if there are none.

    Raises StoreError.
    """
    return await _write_object(store, user_id, map(encode_summary, summaries))


async def merge_objects(store: Store, user_id: str, names: Sequence[str]) -> str | None:
    """Merge objects of the index into one, and return its key; None if all of them are gone.

    Raises StoreError.
    """
    cache = IndexCache()
    parts = await asyncio.gather(*(_load_part(store, name, cache) for name in names))
    newest = _merge(line for part in parts if part is not None for line in part)
    key = await _write_object(store, user_id, (line.body for line in newest.values()))
    await asyncio.gather(*map(store.delete, names))
    return key


async def _write_object(store: Store, user_id: str, lines: Iterable[bytes]) -> str | None:
    """Write an object of the index, and return its key; None if it would be empty."""
    body = b"".join(line + b"\n" for line in lines)
    if not body:
        return None
    key = f"{keys.index_prefix(user_id)}{uuid4().hex}.jsonl"
    await store.create(key, body)
    return key


async def compact_index(
    store: Store,
    user_id: str,
    index: ListIndex,
    present: Collection[str],
    cache: IndexCache | None = None,
) -> None:
    """Merge objects of an index if there are many, or some have what is no longer `present`.

    That is left out: it is purged or deleted. A store that cannot be written to keeps all as it is.
    """
    known = set(present)
    small = {name: part for name, part in index.objects.items() if len(part) < SMALL_OBJECT}
    merged = small if len(small) > MAX_SMALL_OBJECTS else {}
    merged |= {
        name: part for name, part in index.objects.items() if any(it.id not in known for it in part)
    }
    if sum(map(len, index.objects.values())) > 2 * len(known) + SMALL_OBJECT:
        merged = index.objects
    if not merged:
        return
    newest = ListIndex(merged).merge()
    with suppress(StoreRefused, StoreUnavailable):
        part = tuple(it for it in newest.values() if it.id in known)
        key = await _write_object(store, user_id, (line.body for line in part))
        if cache is not None and key is not None:
            cache.put(key, part)
        await asyncio.gather(*map(store.delete, merged))


async def remove_from_index(store: Store, user_id: str, conversation_id: str) -> None:
    """Remove what an index says of a purged conversation. Raises StoreError.

    What a worker still notes of it is dropped by whoever lists next: see `compact_index`.
    """
    index = await load_index(store, user_id)
    for name, part in index.objects.items():
        if any(line.id == conversation_id for line in part):
            others = (line.body for line in part if line.id != conversation_id)
            await _write_object(store, user_id, others)
            await store.delete(name)


async def is_current(store: Store, user_id: str, summary: Summary) -> bool:
    """Tell whether no event follows those of the summary, nor a trouble, and all still exists."""
    prefix = keys.conversation_prefix(user_id, summary.id)
    following = keys.event_key(summary.id, summary.events)
    last = keys.event_key(summary.id, summary.events - 1)  # of a purged one nothing is left
    names = following, last, keys.TROUBLE
    found = await asyncio.gather(*(store.read(prefix + name) for name in names))
    has_trouble = find_trouble(found[2], summary.events) is not None
    return found[0] is None and found[1] is not None and not has_trouble


def find_place(
    age: datetime, name: str, index: Mapping[str, IndexLine], activity: datetime | None = None
) -> datetime:
    """Return the last known activity of a conversation, the latest of three."""
    moments = [age, activity or age]
    fields = index[name].fields if name in index else None
    if fields is not None and fields.last_event is not None:
        with suppress(ValueError):
            moments.append(datetime.fromisoformat(fields.last_event))
    return max(moments)


def is_lasting(summary: Summary) -> bool:
    """Tell whether a summary stays right until the next event: it may enter the index."""
    return summary.status != RUNNING and summary.trouble is None


async def _load_part(store: Store, name: str, cache: IndexCache) -> tuple[IndexLine, ...] | None:
    if (known := cache.get(name)) is not None:
        return known
    body = await store.read(name)
    if body is None:
        return None
    part = tuple(filter(None, map(parse_line, body.splitlines())))
    cache.put(name, part)
    return part


def _merge(lines: Iterable[IndexLine]) -> dict[str, IndexLine]:
    newest: dict[str, IndexLine] = {}
    for line in lines:
        known = newest.get(line.id)
        if known is None or _rank(known) <= _rank(line):
            newest[line.id] = line
    return newest


def _rank(line: IndexLine) -> tuple[int, bool]:
    """Rank a line among those of a conversation, less if it was made before the state was."""
    return (line.fields.events, line.fields.is_lasting) if line.fields is not None else (-1, False)


def encode_summary(summary: Summary) -> bytes:
    values = vars(summary) | {"usage": summary.usage.model_dump(exclude_defaults=True)}
    return json.dumps(values, ensure_ascii=False).encode(errors="replace")


_FIELDS = frozenset(item.name for item in fields(Summary))
_TUPLES: Sequence[str] = ("tags", "asks")


_HEAD = re.compile(rb'\{"id": "([0-9a-f-]{36})"')


def parse_line(body: bytes) -> IndexLine | None:
    """Parse the beginning of a line; None for one that is damaged there."""
    head = _HEAD.match(body)
    return IndexLine(head[1].decode(), body) if head is not None else None


def _parse_fields(body: bytes) -> LineFields | None:
    try:
        values = from_json(body)
        return LineFields(
            events=int(values["events"]),
            is_lasting=values["status"] != RUNNING and values["trouble"] is None,
            last_event=values["last_event"],
            agent=values.get("agent"),
            app=values.get("app"),
            is_hidden=bool(values.get("is_hidden")),
        )
    except (ValueError, TypeError, LookupError):
        return None
