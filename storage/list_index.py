"""The index of a user's conversations: their summaries, as they came to rest last.

Lists are quick by it, and right without it: it is made of the logs, and `reindex` makes it anew.
Each of its objects holds some summaries, a line each, and is written once. Of two summaries of one
conversation the one of more events counts, so that objects can be written, merged and deleted in
any order. A summary of a conversation that went on since is no longer current: see `is_current`.
"""

import asyncio
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any
from uuid import uuid4

from perdure.events.usage import Usage
from perdure.storage import keys
from perdure.storage.cache import Cache
from perdure.storage.conversations import list_candidates
from perdure.storage.errors import StoreRefused, StoreUnavailable
from perdure.storage.store import Store, list_keys
from perdure.storage.summaries import Summary, summarize

MAX_SMALL_OBJECTS = 16
"""Small objects of an index, above which a reader merges them into one."""

SMALL_OBJECT = 1000
"""Summaries of an object, below which it is small."""

MAX_CACHED_SUMMARIES = 200_000
PARALLEL_SUMMARIES = 16


@dataclass(frozen=True)
class ListIndex:
    """The stored index of a user: its objects, and the newest summaries by conversation."""

    objects: dict[str, tuple[Summary, ...]] = field(default_factory=dict)

    def merge(self) -> dict[str, Summary]:
        return _merge(summary for part in self.objects.values() for summary in part)


class IndexCache(Cache[str, tuple[Summary, ...]]):
    """The objects that were read last, by their keys: they never change."""

    def __init__(self) -> None:
        super().__init__(MAX_CACHED_SUMMARIES, lambda part: len(part) + 1)


async def load_index(store: Store, user_id: str, cache: IndexCache | None = None) -> ListIndex:
    """Load a user's index; an empty one if it was lost. Raises StoreError."""
    cache = cache or IndexCache()
    while True:
        names = [key async for key in list_keys(store, keys.index_prefix(user_id))]
        parts = await asyncio.gather(*(_load_part(store, name, cache) for name in names))
        loaded = {name: part for name, part in zip(names, parts, strict=True) if part is not None}
        if len(loaded) == len(names):
            return ListIndex(loaded)
        # Somebody has merged objects in between: what they held is in a new one.


async def add_to_index(store: Store, user_id: str, summaries: Iterable[Summary]) -> None:
    """Write summaries into the index, as one object. Raises StoreError."""
    await _write_part(store, user_id, tuple(summaries))


async def _write_part(store: Store, user_id: str, part: tuple[Summary, ...]) -> str | None:
    """Write an object of the index, and return its key; None if it would be empty."""
    if not part:
        return None
    key = f"{keys.index_prefix(user_id)}{uuid4().hex}.jsonl"
    await store.create(key, b"".join(map(_encode, part)))
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
        key = await _write_part(store, user_id, part)
        if cache is not None and key is not None:
            cache.put(key, part)
        await asyncio.gather(*map(store.delete, merged))


async def reindex(store: Store, user_id: str) -> int:
    """Make a user's index anew from the logs; return the number of conversations in it.

    Raises StoreError.
    """
    former = [key async for key in list_keys(store, keys.index_prefix(user_id))]
    ids = await list_candidates(store, user_id)
    turns = asyncio.Semaphore(PARALLEL_SUMMARIES)

    async def read(name: str) -> Summary | None:
        async with turns:
            return await summarize(store, user_id, name)

    found = [summary for summary in await asyncio.gather(*map(read, ids)) if summary is not None]
    await add_to_index(store, user_id, found)
    await asyncio.gather(*map(store.delete, former))
    return len(found)


async def remove_from_index(store: Store, user_id: str, conversation_id: str) -> None:
    """Remove what an index says of a purged conversation. Raises StoreError.

    What a worker still notes of it is dropped by whoever lists next: see `compact_index`.
    """
    index = await load_index(store, user_id)
    for name, part in index.objects.items():
        if any(summary.id == conversation_id for summary in part):
            await add_to_index(store, user_id, (it for it in part if it.id != conversation_id))
            await store.delete(name)


async def is_current(store: Store, user_id: str, summary: Summary) -> bool:
    """Tell whether no event follows those of the summary, and the conversation still exists."""
    prefix = keys.conversation_prefix(user_id, summary.id)
    following = keys.event_key(summary.id, summary.events)
    last = keys.event_key(summary.id, summary.events - 1)  # of a purged one nothing is left
    found = await asyncio.gather(store.read(prefix + following), store.read(prefix + last))
    return found[0] is None and found[1] is not None


def find_place(
    age: datetime, name: str, index: Mapping[str, Summary], activity: datetime | None = None
) -> datetime:
    """Return the last known activity of a conversation, the latest of three."""
    moments = [age, activity or age]
    if name in index and (last := index[name].last_event) is not None:
        with suppress(ValueError):
            moments.append(datetime.fromisoformat(last))
    return max(moments)


def is_lasting(summary: Summary) -> bool:
    """Tell whether a summary stays right until the next event: it may enter the index."""
    return summary.status != "running" and summary.trouble is None


async def _load_part(store: Store, name: str, cache: IndexCache) -> tuple[Summary, ...] | None:
    if (known := cache.get(name)) is not None:
        return known
    body = await store.read(name)
    if body is None:
        return None
    part = tuple(filter(None, map(_decode, body.splitlines())))
    cache.put(name, part)
    return part


def _merge(summaries: Iterable[Summary]) -> dict[str, Summary]:
    newest: dict[str, Summary] = {}
    for summary in summaries:
        known = newest.get(summary.id)
        if known is None or _rank(known) <= _rank(summary):
            newest[summary.id] = summary
    return newest


def _rank(summary: Summary) -> tuple[int, bool]:
    """Rank a summary among those of a conversation, less if it was made before the state was."""
    return summary.events, is_lasting(summary)


def _encode(summary: Summary) -> bytes:
    values = vars(summary) | {"usage": summary.usage.model_dump(exclude_defaults=True)}
    return json.dumps(values, ensure_ascii=False).encode(errors="replace") + b"\n"


_FIELDS = frozenset(item.name for item in fields(Summary))
_TUPLES: Sequence[str] = ("tags", "asks")


def _decode(line: bytes) -> Summary | None:
    """Decode a line; None for one that is damaged, or lacks what this version needs."""
    try:
        values: dict[str, Any] = {
            name: value for name, value in json.loads(line).items() if name in _FIELDS
        }
        values |= {name: tuple(values[name]) for name in _TUPLES}
        values["usage"] = Usage.model_validate(values["usage"])
        return Summary(**values)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
