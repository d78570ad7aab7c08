"""Deleting a conversation for good: the only thing that ever deletes."""

import asyncio
from collections.abc import Iterable

from storage.errors import StillForked
from storage.fork import forks_of
from storage.keys import EVENTS, FORK, conversation_prefix, fork_mark
from storage.listing import keys
from storage.log import EventLog
from storage.store import Store

AT_ONCE = 32


async def purge(log: EventLog) -> int:
    """Delete every object of the conversation, and tell how many there were.

    Nobody may be writing it. Its events go last, so that one which was purged halfway is still
    there to be purged again. Raises StillForked where others refer to its events.
    """
    if forks := await forks_of(log):
        raise StillForked(log.conversation_id, forks)
    prefix = conversation_prefix(log.user_id, log.conversation_id)
    lineage = await log.lineage()
    beside = [key async for key in keys(log.store, prefix) if not _is_log(key, prefix)]
    await _delete(log.store, beside)
    events = [key async for key in keys(log.store, prefix)]
    await _delete(log.store, (key for key in events if key != prefix + FORK))
    await log.store.delete(prefix + FORK)
    if len(lineage) > 1:
        await log.store.delete(lineage[1].prefix + fork_mark(log.conversation_id))
    return len(beside) + len(events)


def _is_log(key: str, prefix: str) -> bool:
    return key.startswith(prefix + EVENTS) or key == prefix + FORK


async def _delete(store: Store, doomed: Iterable[str]) -> None:
    left = list(doomed)
    for first in range(0, len(left), AT_ONCE):
        await asyncio.gather(*(store.delete(key) for key in left[first : first + AT_ONCE]))
