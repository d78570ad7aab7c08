"""Which conversations a user has."""

import asyncio

from storage.keys import (
    EVENTS,
    FORK,
    conversation_prefix,
    conversations_prefix,
    is_conversation_id,
    is_derived,
)
from storage.store import Store

PAGE = 1000


async def conversations(store: Store, user_id: str, limit: int) -> list[str]:
    """The ids of the user's last `limit` conversations, newest first.

    Ids are UUIDv7, which sort by the time they were made; those of conversations that another one
    or a batch has begun are made from names, and are not listed: who began them names them. A store
    lists its oldest names first, so this asks once for every 1,000 conversations there are, and
    once for each that is named: a purged one may be listed for a while.
    """
    prefix = conversations_prefix(user_id)
    left: list[str] = []
    page: list[str] = []
    while not page or len(page) == PAGE:
        page = await store.folders(prefix, after=page[-1] if page else "", limit=PAGE)
        if not page:
            break
        left.extend(name for name in page if is_conversation_id(name) and not is_derived(name))
    found: list[str] = []
    while left and len(found) < limit:
        newest = [left.pop() for _ in range(min(limit - len(found), len(left)))]
        listed = await asyncio.gather(*(store.list(f"{prefix}{name}/", limit=1) for name in newest))
        found += [name for name, keys in zip(newest, listed, strict=True) if keys]
    return found


async def exists(store: Store, user_id: str, conversation_id: str) -> bool:
    """Whether anything was ever recorded of the conversation, be it by the one that it forks."""
    prefix = conversation_prefix(user_id, conversation_id)
    if await store.list(prefix + EVENTS, limit=1):
        return True
    return await store.read(prefix + FORK) is not None
