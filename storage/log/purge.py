"""Permanent deletion of a conversation; no other code deletes."""

import asyncio

from perdure.storage.errors import StillForked
from perdure.storage.keys import EVENTS, FORK, fork_mark_key, hidden_key
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
    log_keys = (log.prefix + EVENTS, log.prefix + FORK)
    listed = list_keys(log.store, log.prefix)
    other_keys = [key async for key in listed if not key.startswith(log_keys)]
    lineage = await log.lineage()
    await _delete(log.store, other_keys)
    events = [key async for key in list_keys(log.store, log.prefix)]
    await _delete(log.store, [key for key in events if key != log.prefix + FORK])
    await log.store.delete(log.prefix + FORK)
    await log.store.delete(hidden_key(log.user_id, log.conversation_id))
    if len(lineage) > 1:
        await log.store.delete(lineage[1].prefix + fork_mark_key(log.conversation_id))
    return len(other_keys) + len(events)


async def _delete(store: Store, keys: list[str]) -> None:
    for first in range(0, len(keys), PARALLEL_DELETES):
        await asyncio.gather(*map(store.delete, keys[first : first + PARALLEL_DELETES]))
