"""What others share with a user: found by the marks of grants, and shown by the grants alone."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from perdure.events.base import Frozen
from perdure.storage.conversations import UNKNOWN_TIME, creation_time, is_hidden
from perdure.storage.errors import Altered
from perdure.storage.grants import Access, Kind, Shareable, read_access
from perdure.storage.keys import shared_prefix
from perdure.storage.store import Store, list_keys

PARALLEL_READS = 16

MAX_LISTED = 1000
"""Shared conversations, batches or discussions that a command lists."""


class Shared(Frozen):
    """A conversation, a batch or a discussion that another user shares."""

    owner: str
    id: str
    """The id of the conversation or the discussion, or the name of the batch."""
    access: Access


async def list_marked(store: Store, user_id: str, kind: Kind) -> list[Shareable]:
    """List what was ever shared with a user: conversations by age, newest first, others by name.

    That takes one request for every 1,000. A conversation whose id holds no time comes last.
    """
    prefix = shared_prefix(user_id, kind)
    names = [key.removeprefix(prefix).split("/") async for key in list_keys(store, prefix)]
    marked = [Shareable(kind, owner, name) for owner, name in names]
    if kind != "conversation":
        return sorted(marked, key=lambda it: f"{it.id}/{it.owner}")
    return sorted(marked, key=lambda it: (read_time(it), it.name), reverse=True)


def read_time(conversation: Shareable) -> datetime:
    """Return when a conversation was created, by its id, or UNKNOWN_TIME."""
    return creation_time(conversation.id) or UNKNOWN_TIME


async def find_shared(store: Store, of: Shareable, user_id: str) -> Shared | None:
    """Return what is shared with a user now; None without a grant, or if its owner has hidden it.

    A damaged grant is none.
    """
    try:
        access = await read_access(store, of, user_id)
    except Altered:
        return None
    if access is None:
        return None
    if of.kind == "conversation" and await is_hidden(store, of.owner, of.id):
        return None
    return Shared(owner=of.owner, id=of.id, access=access)


async def walk_shared(
    store: Store, user_id: str, marked: Sequence[Shareable]
) -> AsyncIterator[Shared]:
    """Yield what of the `marked` is shared with a user now, in order."""
    for first in range(0, len(marked), PARALLEL_READS):
        part = marked[first : first + PARALLEL_READS]
        for found in await asyncio.gather(*(find_shared(store, of, user_id) for of in part)):
            if found is not None:
                yield found


async def list_shared(store: Store, user_id: str, kind: Kind, limit: int) -> list[Shared]:
    """List what others share with a user, in the order of `list_marked`, at most `limit`."""
    items: list[Shared] = []
    async for found in walk_shared(store, user_id, await list_marked(store, user_id, kind)):
        if len(items) == limit:
            break
        items.append(found)
    return items
