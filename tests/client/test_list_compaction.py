"""The index of lists is compacted behind the answers of a process that stays."""

import asyncio
from types import SimpleNamespace
from typing import Any

from perdure.client.lists.lists import ConversationLists, ListFilter
from perdure.storage.errors import StoreError
from perdure.storage.keys import index_prefix
from perdure.storage.list_index import add_to_index
from perdure.storage.summaries import summarize
from tests.storage.memory import MemoryStore
from tests.storage.test_list_index import USER, start_log

CONVERSATIONS = 20


class SlowStore(MemoryStore):
    """A store that deletes nothing until it is told to; it then refuses, if it is `broken`."""

    def __init__(self) -> None:
        super().__init__()
        self.may_delete = asyncio.Event()
        self.deleted: list[str] = []
        self.broken = False

    async def delete(self, key: str) -> None:
        self.deleted.append(key)
        await self.may_delete.wait()
        if self.broken:
            raise StoreError("The store is broken.")
        await super().delete(key)


async def fill(store: MemoryStore) -> set[str]:
    """Begin conversations that are indexed one by one; return their ids."""
    names = [await start_log(store, f"text {nth}") for nth in range(CONVERSATIONS)]
    for name in names:
        summary = await summarize(store, USER, name)
        assert summary is not None
        await add_to_index(store, USER, [summary])
    return set(names)


async def read(lists: ConversationLists) -> set[str]:
    client: Any = SimpleNamespace(user_id=USER, has_search_attributes=has_none)
    page = await lists.read_page(client, 100, None, ListFilter())
    return {item.id for item in page.items}


async def has_none() -> bool:
    return False


async def test_a_process_that_stays_answers_before_the_index_is_compacted() -> None:
    store = SlowStore()
    names = await fill(store)
    lists = ConversationLists(store, is_resident=True)
    async with asyncio.timeout(5):
        assert await read(lists) == names
        assert await read(lists) == names  # while the index is compacted
    store.may_delete.set()
    async with asyncio.timeout(5):
        while len(await store.list(index_prefix(USER))) > 1:
            await asyncio.sleep(0.01)
    assert len(store.deleted) == len(set(store.deleted)) == CONVERSATIONS
    assert await read(ConversationLists(store)) == names


async def test_a_command_compacts_before_it_ends() -> None:
    store = SlowStore()
    store.may_delete.set()
    names = await fill(store)
    assert await read(ConversationLists(store)) == names
    assert len(await store.list(index_prefix(USER))) == 1


async def test_a_compaction_that_fails_is_logged_and_tried_again(caplog: Any) -> None:
    store = SlowStore()
    store.broken = True
    store.may_delete.set()
    names = await fill(store)
    lists = ConversationLists(store, is_resident=True)
    assert await read(lists) == names
    async with asyncio.timeout(5):
        while "could not be compacted: The store is broken." not in caplog.text:
            await asyncio.sleep(0.01)
    store.broken = False
    assert await read(lists) == names
    async with asyncio.timeout(5):
        while len(await store.list(index_prefix(USER))) > 1:
            await asyncio.sleep(0.01)


async def test_a_process_that_ends_leaves_a_compaction_undone() -> None:
    store = SlowStore()
    names = await fill(store)
    lists = ConversationLists(store, is_resident=True)
    await read(lists)
    while not store.deleted:
        await asyncio.sleep(0.01)
    async with asyncio.timeout(5):
        await lists.close()
    store.may_delete.set()
    assert await read(ConversationLists(store)) == names
    assert len(await store.list(index_prefix(USER))) == 1
