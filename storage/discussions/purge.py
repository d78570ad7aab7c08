"""Permanent deletion of a discussion's objects."""

import asyncio

from perdure.storage import keys
from perdure.storage.store import Store, list_keys

PARALLEL_DELETES = 32


async def purge_session(store: Store, user_id: str, session_id: str) -> int:
    """Delete every object of a discussion; return how many there were.

    Nobody may be writing it. Its spec goes last, so that a half-purged discussion can still be
    found and purged again.
    """
    prefix = keys.discussion_prefix(user_id, session_id)
    names = [key async for key in list_keys(store, prefix)]
    others = [key for key in names if key != prefix + keys.DISCUSSION]
    for first in range(0, len(others), PARALLEL_DELETES):
        await asyncio.gather(*map(store.delete, others[first : first + PARALLEL_DELETES]))
    await store.delete(prefix + keys.DISCUSSION)
    return len(names)
