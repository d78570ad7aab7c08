"""The index of a user's conversations made anew, from their logs."""

import asyncio

from perdure.storage import keys
from perdure.storage.conversations import list_candidates
from perdure.storage.list_index import add_to_index
from perdure.storage.store import Store, list_keys
from perdure.storage.summaries import summarize
from perdure.storage.summary import Summary

PARALLEL_SUMMARIES = 16


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
