"""The catalog of a store reads of each conversation as little as it can, and never what is old."""

from dataclasses import replace

from perdure.cli.catalogs.store import MAX_INDEX_OBJECTS, StoreCatalog
from perdure.storage import keys
from perdure.storage.list_index import add_to_index
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.reader import LogReader
from perdure.storage.log.trouble import save_trouble
from perdure.storage.reindex import reindex
from perdure.storage.summaries import summarize
from perdure.storage.summary import Summary
from tests.storage.made import NOW, origin_by, user_message
from tests.storage.memory import MemoryStore
from tests.storage.test_list_index import USER, start_log


class CountingStore(MemoryStore):
    """A store that notes which states are read."""

    def __init__(self) -> None:
        super().__init__()
        self.states = 0

    async def read(self, key: str) -> bytes | None:
        self.states += key.endswith(keys.STATE)
        return await super().read(key)


async def fill(store: MemoryStore) -> list[str]:
    """Begin three conversations, and index what they are as if they rested; return their ids."""
    names = [await start_log(store, f"text {nth}") for nth in range(3)]
    for name in names:
        summary = await summarize(store, USER, name)
        assert summary is not None
        rests = replace(summary, status="finished", phase="finished", title="indexed")
        await add_to_index(store, USER, [rests])
    return names


async def walk(store: MemoryStore, with_message: bool = False) -> dict[str, Summary]:
    found = StoreCatalog(store, USER).walk(lambda _: True, 10, with_message=with_message)
    return {summary.id: summary async for summary in found}


async def test_what_the_index_says_is_shown_until_an_event_or_a_trouble_follows() -> None:
    store = CountingStore()
    still, went_on, stands = await fill(store)
    before = store.states
    assert {it.title for it in (await walk(store)).values()} == {"indexed"}
    assert store.states == before
    log = EventLog(store, USER, went_on)
    await log.append([user_message("more")], base=1, origin=origin_by("b"))
    await save_trouble(LogReader(store, USER, stands), "No worker is there.", NOW)
    shown = await walk(store)
    assert shown[still].title == "indexed"
    assert (shown[went_on].events, shown[went_on].status) == (2, "running")
    assert shown[stands].trouble == "No worker is there."
    assert store.states == before + 2


async def test_first_messages_are_read_from_the_logs() -> None:
    store = CountingStore()
    await fill(store)
    messages = {it.first_message for it in (await walk(store, with_message=True)).values()}
    assert messages == {"text 0", "text 1", "text 2"}


async def test_what_was_indexed_at_work_and_an_index_of_many_objects_are_not_used() -> None:
    store = CountingStore()
    names = await fill(store)
    await reindex(store, USER)
    assert {it.status for it in (await walk(store)).values()} == {"running"}
    for number in range(MAX_INDEX_OBJECTS + 1):
        await store.create(f"{keys.index_prefix(USER)}{number}.jsonl", b"")
    before = store.states
    assert set(await walk(store)) == set(names)
    assert store.states == before + 3
