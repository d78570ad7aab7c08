"""Permanent deletion of a conversation; no other code deletes."""

import asyncio
from collections.abc import Iterable

from perdure.storage.errors import StillForked
from perdure.storage.keys import EVENTS, FORK, conversation_prefix, fork_mark_key
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.fork import forks_of
from perdure.storage.store import Store, list_keys

PARALLEL_DELETES = 32


async def purge(log: EventLog) -> int:
    """Delete every object of the conversation; return how many there were.

    Nobody may be writing it. Its events go last, so that a half-purged conversation can still be
    found and purged again. Raises StillForked while others refer to its events.
    """
    if forks := await forks_of(log):
        raise StillForked(log.conversation_id, forks)
    prefix = conversation_prefix(log.user_id, log.conversation_id)
    lineage = await log.lineage()
    other_keys = [key async for key in list_keys(log.store, prefix) if not _is_log(key, prefix)]
    await _delete(log.store, other_keys)
    events = [key async for key in list_keys(log.store, prefix)]
    await _delete(log.store, (key for key in events if key != prefix + FORK))
    await log.store.delete(prefix + FORK)
    if len(lineage) > 1:
        await log.store.delete(lineage[1].prefix + fork_mark_key(log.conversation_id))
    return len(other_keys) + len(events)


def _is_log(key: str, prefix: str) -> bool:
    return key.startswith(prefix + EVENTS) or key == prefix + FORK


async def _delete(store: Store, keys: Iterable[str]) -> None:
    remaining = list(keys)
    for first in range(0, len(remaining), PARALLEL_DELETES):
        await asyncio.gather(
            *(store.delete(key) for key in remaining[first : first + PARALLEL_DELETES])
        )
