"""Deletion of a conversation, on every store."""

import pytest

from perdure.storage.conversations import conversation_exists, list_conversations
from perdure.storage.errors import StillForked, StoreUnavailable
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.purge import purge
from perdure.storage.store import Store
from tests.storage.log.test_fork import fill, make_fork
from tests.storage.made import log_in, texts
from tests.storage.memory import MemoryStore


async def complete_conversation(store: Store) -> EventLog:
    """Create a conversation with an object of every kind."""
    log = log_in(store)
    await fill(log, 5)
    await log.store_blob(b"long output")
    await log.save_state(b"{}")
    return log


async def test_a_purge_deletes_every_object_of_the_conversation_and_no_other(
    store: Store,
) -> None:
    other, log = await complete_conversation(store), await complete_conversation(store)
    before = await store.list("")
    assert await purge(log) == 7
    left = await store.list("")
    assert left == [key for key in before if other.conversation_id in key]
    assert not await conversation_exists(store, "somebody", log.conversation_id)
    assert await list_conversations(store, "somebody", 10) == [other.conversation_id]


async def test_a_conversation_with_forks_is_not_purged(store: Store) -> None:
    parent = await complete_conversation(store)
    child = await make_fork(parent, 2)
    before = await store.list("")
    with pytest.raises(StillForked, match=child.conversation_id) as caught:
        await purge(parent)
    assert caught.value.forks == [child.conversation_id]
    assert await store.list("") == before


async def test_a_purged_fork_leaves_its_parent_whole_and_purgeable(store: Store) -> None:
    parent = await complete_conversation(store)
    before = await store.list("")
    child = await make_fork(parent, 2, "on")
    await purge(child)
    assert await store.list("") == before
    assert texts(await parent.read(0, 10)) == ["0", "1", "2", "3", "4"]
    assert await purge(parent) == len(before)


class DyingStore(MemoryStore):
    """A store that fails after some deletions."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left

    async def delete(self, key: str) -> None:
        self.left -= 1
        if self.left < 0:
            raise StoreUnavailable("no more today")
        await super().delete(key)


@pytest.mark.parametrize("deletions", range(7))
async def test_an_interrupted_purge_can_be_repeated(deletions: int) -> None:
    store = DyingStore(deletions)
    parent = await complete_conversation(store)
    child = await make_fork(parent, 2, "on", "and on")
    await child.store_blob(b"long output")
    if deletions < 6:
        with pytest.raises(StoreUnavailable):
            await purge(child)
    store.left = 1000
    if await conversation_exists(store, "somebody", child.conversation_id):
        await purge(log_in(store, conversation=child.conversation_id))
    await purge(log_in(store, conversation=parent.conversation_id))
    assert await store.list("") == []
