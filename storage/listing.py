"""Listing keys, however many there are."""

from collections.abc import AsyncIterator

from storage.store import Store

PAGE = 1000


async def keys(store: Store, prefix: str, after: str = "") -> AsyncIterator[str]:
    """The keys that begin with `prefix` and sort after the key `after`, in the store's order."""
    page = await store.list(prefix, after, PAGE)
    while page:
        for key in page:
            yield key
        page = await store.list(prefix, page[-1], PAGE) if len(page) == PAGE else []
