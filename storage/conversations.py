"""Listing a user's conversations."""

import asyncio

from perdure.storage import keys
from perdure.storage.store import Store, list_folders


async def list_conversations(store: Store, user_id: str, limit: int) -> list[str]:
    """List the ids of the user's last `limit` conversations, newest first.

    Ids are UUIDv7, which sort by creation time. Conversations begun by another one or by a batch
    have ids made from names and are not listed: their creator names them. A store lists its oldest
    names first, so this needs one request for every 1,000 conversations, and one for each id
    returned: a purged conversation may still be listed for a while.
    """
    prefix = keys.conversations_prefix(user_id)
    names = filter(keys.is_conversation_id, await list_folders(store, prefix))
    candidates = [name for name in names if not keys.is_derived(name)]
    ids: list[str] = []
    while candidates and len(ids) < limit:
        newest = [candidates.pop() for _ in range(min(limit - len(ids), len(candidates)))]
        listed = await asyncio.gather(*(store.list(f"{prefix}{name}/", limit=1) for name in newest))
        ids += [name for name, objects in zip(newest, listed, strict=True) if objects]
    return ids


async def conversation_exists(store: Store, user_id: str, conversation_id: str) -> bool:
    """Check whether anything was recorded of the conversation, if only the fork it begins with."""
    prefix = keys.conversation_prefix(user_id, conversation_id)
    events = await store.list(prefix + keys.EVENTS, limit=1)
    return bool(events) or await store.read(prefix + keys.FORK) is not None
