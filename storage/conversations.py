"""Which conversations a user has."""

from collections import deque

from storage.keys import conversation_prefix, conversations_prefix, is_conversation_id
from storage.store import Store

PAGE = 1000


async def conversations(store: Store, user_id: str, limit: int) -> list[str]:
    """The ids of the user's last `limit` conversations, newest first.

    Ids are UUIDv7, which sort by the time they were made. A store lists its oldest names first,
    so this asks once for every 1,000 conversations there are.
    """
    prefix = conversations_prefix(user_id)
    newest: deque[str] = deque(maxlen=limit)
    page: list[str] = []
    while not page or len(page) == PAGE:
        page = await store.folders(prefix, after=page[-1] if page else "", limit=PAGE)
        if not page:
            break
        newest.extend(name for name in page if is_conversation_id(name))
    return list(reversed(newest))


async def exists(store: Store, user_id: str, conversation_id: str) -> bool:
    """Whether anything was ever recorded of the conversation."""
    prefix = conversation_prefix(user_id, conversation_id)
    return bool(await store.list(f"{prefix}events/", limit=1))
