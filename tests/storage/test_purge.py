"""Deleting a conversation, on every store there is."""

import pytest

from storage.conversations import conversations, exists
from storage.errors import StillForked, StoreUnavailable
from storage.log import EventLog
from storage.purge import purge
from storage.store import Store
from tests.storage.made import log_in, texts
from tests.storage.memory import MemoryStore
from tests.storage.test_fork import filled, forked


async def whole(store: Store) -> EventLog:
    """A conversation with one of everything."""
    log = log_in(store)
    await filled(log, 5)
    await log.keep(b"long output")
    await log.save_state(b"{}")
    return log


async def test_nothing_is_left_of_a_conversation_and_everything_of_the_others(
    store: Store,
) -> None:
    other, log = await whole(store), await whole(store)
    before = await store.list("")
    assert await purge(log) == 7
    left = await store.list("")
    assert left == [key for key in before if other.conversation_id in key]
    assert not await exists(store, "somebody", log.conversation_id)
    assert await conversations(store, "somebody", 10) == [other.conversation_id]


async def test_what_a_fork_needs_is_not_deleted(store: Store) -> None:
    parent = await whole(store)
    child = await forked(parent, 2)
    before = await store.list("")
    with pytest.raises(StillForked, match=child.conversation_id) as caught:
        await purge(parent)
    assert caught.value.forks == [child.conversation_id]
    assert await store.list("") == before


async def test_a_purged_fork_leaves_its_parent_whole_and_free_to_go(store: Store) -> None:
    parent = await whole(store)
    before = await store.list("")
    child = await forked(parent, 2, "on")
    await purge(child)
    assert await store.list("") == before
    assert texts(await parent.read(0, 10)) == ["0", "1", "2", "3", "4"]
    assert await purge(parent) == len(before)


class DyingStore(MemoryStore):
    """Deletes so many objects and no more."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left

    async def delete(self, key: str) -> None:
        self.left -= 1
        if self.left < 0:
            raise StoreUnavailable("no more today")
        await super().delete(key)


@pytest.mark.parametrize("deletions", range(7))
async def test_a_purge_that_was_cut_off_can_be_made_again(deletions: int) -> None:
    store = DyingStore(deletions)
    parent = await whole(store)
    child = await forked(parent, 2, "on", "and on")
    await child.keep(b"long output")
    if deletions < 6:
        with pytest.raises(StoreUnavailable):
            await purge(child)
    store.left = 1000
    if await exists(store, "somebody", child.conversation_id):
        await purge(log_in(store, conversation=child.conversation_id))
    await purge(log_in(store, conversation=parent.conversation_id))
    assert await store.list("") == []
