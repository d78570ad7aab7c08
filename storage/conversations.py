"""Listing a user's conversations."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Iterable
from datetime import UTC, datetime
from itertools import takewhile
from typing import TypeAlias

from perdure.storage import keys
from perdure.storage.cache import Cache
from perdure.storage.store import KEYS_PER_PAGE, Store, list_folders, list_keys

BEYOND_HEX = "~"
"""Sorts after every character of an id."""

PARALLEL_READS = 32

MANY_NAMES = KEYS_PER_PAGE
"""Names of conversations that a request lists; fewer than that are all listed at once."""

MAX_FOREIGN_NAMES = 100
"""Names before those of our conversations, above which all are listed."""

UNKNOWN_TIME = datetime.min.replace(tzinfo=UTC)

Age: TypeAlias = tuple[datetime, str]
"""When a conversation was created, and its id."""


async def list_conversations(
    store: Store, user_id: str, limit: int, with_hidden: bool = False
) -> list[str]:
    """List the ids of the user's last `limit` conversations, newest first.

    This needs the requests of `list_candidates`, and one for each id returned.
    """
    prefix = keys.conversations_prefix(user_id)
    candidates = await list_candidates(store, user_id, with_hidden)
    ids: list[str] = []
    while candidates and len(ids) < limit:
        newest, candidates = candidates[: limit - len(ids)], candidates[limit - len(ids) :]
        listed = await asyncio.gather(*(store.list(f"{prefix}{name}/", limit=1) for name in newest))
        ids += [name for name, objects in zip(newest, listed, strict=True) if objects]
    return ids


async def list_candidates(store: Store, user_id: str, with_hidden: bool = False) -> list[str]:
    """List the ids of the user's conversations, newest first; a purged one may be among them.

    Conversations begun by another one or by a batch have ids made from names and are not listed:
    their creator names them. Nor are hidden ones, unless asked for.
    """
    return await _order(store, user_id, *await _list_names(store, user_id, with_hidden))


async def _order(store: Store, user_id: str, timed: list[str], foreign: list[str]) -> list[str]:
    """Order ids that hold their time of creation, and others, the newest first."""
    if not foreign:
        return sorted(timed, reverse=True)
    ages = await asyncio.gather(*map(_read_age(store, user_id), foreign))
    return [name for _, name in _sort(timed, ages)]


async def list_newest(
    store: Store, user_id: str, indexed: Collection[str], number: int
) -> list[str] | None:
    """List the newest of `list_candidates`, at least `number`; None where all have to be listed.

    Our ids sort by their time of creation, so that all that is newer than the `number`-th newest of
    the `indexed` ids follows it. An id that somebody else made may stand anywhere: of
    random ones one in ten thousand, for each year of conversations, stands among older ones and is
    missed.
    """
    timed = sorted(filter(keys.is_timed, indexed))
    if number >= MANY_NAMES or len(timed) < MANY_NAMES:
        return None
    prefix = keys.conversations_prefix(user_id)
    first, last, hidden = await asyncio.gather(
        store.folders(prefix, limit=MAX_FOREIGN_NAMES),
        store.folders(prefix, timed[-number - 1], MANY_NAMES),
        list_hidden(store, user_id),
    )
    if not first or first[-1] < timed[0] or len(last) == MANY_NAMES:
        return None
    names = [*takewhile(lambda name: name < timed[0], first), *last]
    return await _order(store, user_id, *_sort_out(names, hidden))


async def list_ages(
    store: Store,
    user_id: str,
    with_hidden: bool = False,
    known: Cache[str, datetime] | None = None,
) -> list[Age]:
    """List when each of the conversations of `list_candidates` was created, and its id.

    Our ids hold the time of creation, so that this needs one request for every 1,000
    conversations; it needs one more for each id that somebody else made, unless it is `known`.
    """
    timed, foreign = await _list_names(store, user_id, with_hidden)
    ages = await asyncio.gather(*map(_read_age(store, user_id, known), foreign))
    return _sort(timed, ages)


def _sort(timed: Iterable[str], ages: Iterable[Age]) -> list[Age]:
    """Sort the ids that hold their time, and others with theirs, the newest first."""
    return sorted([*((creation_time(name) or UNKNOWN_TIME, name) for name in timed), *ages])[::-1]


async def _list_names(store: Store, user_id: str, with_hidden: bool) -> tuple[list[str], list[str]]:
    """List the ids that hold their time of creation, which sort by it, and those of others."""
    names = await list_folders(store, keys.conversations_prefix(user_id))
    hidden = frozenset() if with_hidden else await list_hidden(store, user_id)
    return _sort_out(names, hidden)


def _sort_out(names: Iterable[str], hidden: frozenset[str]) -> tuple[list[str], list[str]]:
    """Return the ids among names that hold their time of creation, and those of others."""
    timed, foreign = list[str](), list[str]()
    for name in names:
        if keys.is_conversation_id(name) and name not in hidden:
            if keys.is_timed(name):
                timed.append(name)
            elif not keys.is_derived(name):
                foreign.append(name)
    return timed, foreign


def _read_age(
    store: Store, user_id: str, known: Cache[str, datetime] | None = None
) -> Callable[[str], Awaitable[Age]]:
    """Return a function that reads when a conversation was created, a few at a time."""
    turns = asyncio.Semaphore(PARALLEL_READS)

    async def read_age(name: str) -> Age:
        begun = known.get(name) if known is not None else None
        if begun is None:
            async with turns:
                begun = await read_creation_time(store, user_id, name)
            if begun is not None and known is not None:
                known.put(name, begun)
        return begun or UNKNOWN_TIME, name

    return read_age


async def hide_conversation(store: Store, user_id: str, conversation_id: str) -> None:
    """Hide a conversation from lists; its log stays. Raises ValueError for a bad id."""
    await store.create(keys.hidden_key(user_id, conversation_id), b"")


async def show_conversation(store: Store, user_id: str, conversation_id: str) -> None:
    """Show a hidden conversation in lists again. Raises ValueError for a bad id."""
    await store.delete(keys.hidden_key(user_id, conversation_id))


async def is_hidden(store: Store, user_id: str, conversation_id: str) -> bool:
    return await store.read(keys.hidden_key(user_id, conversation_id)) is not None


async def list_hidden(store: Store, user_id: str) -> frozenset[str]:
    """List the ids of the hidden conversations of a user."""
    prefix = keys.hidden_prefix(user_id)
    return frozenset([key.removeprefix(prefix) async for key in list_keys(store, prefix)])


async def list_by_prefix(store: Store, user_id: str, start: str, limit: int) -> list[str]:
    """List the ids that begin with `start`, at most `limit`, with one request.

    All ids count: those made from names too, and for a while those of purged conversations.
    """
    significant = start.rstrip("-")  # a hyphen sorts before the slash that ends a name
    before = f"{significant[:-1]}{chr(ord(significant[-1]) - 1)}{BEYOND_HEX}"
    names = await store.folders(keys.conversations_prefix(user_id), before, limit)
    # A hyphen comes where it must: names that lack it are no ids.
    matching = takewhile(lambda name: name.startswith(significant), names)
    return [name for name in matching if keys.is_conversation_id(name) and name.startswith(start)]


def creation_time(conversation_id: str) -> datetime | None:
    """Return the time in the id; None in one that has none."""
    if not keys.is_timed(conversation_id):
        return None
    milliseconds = int(conversation_id[:8] + conversation_id[9:13], 16)
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError):  # somebody else made it, with a year beyond 9999
        return None


async def read_creation_time(store: Store, user_id: str, conversation_id: str) -> datetime | None:
    """Return the time in the id, else that of the first event; None without either."""
    if begun := creation_time(conversation_id):
        return begun
    first = keys.event_key(conversation_id, 0)
    body = await store.read(keys.conversation_prefix(user_id, conversation_id) + first)
    try:
        return datetime.fromisoformat(json.loads(body or b"{}")["timestamp"]).replace(tzinfo=UTC)
    except (ValueError, TypeError, LookupError):  # none yet, a fork's, or a damaged one
        return None


async def conversation_exists(store: Store, user_id: str, conversation_id: str) -> bool:
    """Check whether anything was recorded of the conversation, if only the fork it begins with."""
    prefix = keys.conversation_prefix(user_id, conversation_id)
    events = await store.list(prefix + keys.EVENTS, limit=1)
    return bool(events) or await store.read(prefix + keys.FORK) is not None
