"""The catalog of a store reads of each conversation as little as it can, and never what is old."""

from dataclasses import replace
from datetime import UTC, datetime
from secrets import token_hex
from time import time
from uuid import uuid4

import pytest

from perdure.cli.catalogs.store import MAX_INDEX_OBJECTS, StoreCatalog
from perdure.events.base import TIMESTAMP_FORMAT
from perdure.storage import conversations, keys
from perdure.storage.conversations import hide_conversation, list_candidates, list_newest
from perdure.storage.list_index import add_to_index
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.reader import LogReader
from perdure.storage.log.trouble import save_trouble
from perdure.storage.reindex import reindex
from perdure.storage.summaries import summarize
from perdure.storage.summary import Summary
from tests.storage.made import NOW, origin_by, user_message
from tests.storage.memory import MemoryStore
from tests.storage.test_list_index import USER, make_summary, start_log


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


class RangeStore(CountingStore):
    """A store whose commands list names from one on, and notes how many it listed."""

    lists_from_names = True

    def __init__(self) -> None:
        super().__init__()
        self.listed = 0

    async def folders(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        names = await super().folders(prefix, after, limit)
        self.listed += len(names)
        return names


async def begin(store: MemoryStore, name: str) -> str:
    now = datetime.now(UTC).strftime(TIMESTAMP_FORMAT)
    event = user_message(name, now)
    await EventLog(store, USER, name).append([event], base=0, origin=origin_by("a"))
    return name


async def index_many(store: MemoryStore, number: int) -> list[str]:
    """Begin and index conversations of one second each, a minute ago; return their ids."""
    began = int(time() * 1000) - 60_000 - 1000 * number
    names = [made_id(began + 1000 * nth, "7") for nth in range(number)]
    for name in names:
        await begin(store, name)
    await add_to_index(store, USER, [make_summary(name) for name in names])
    return names


def made_id(milliseconds: int, version: str) -> str:
    time = f"{milliseconds:012x}"
    return f"{time[:8]}-{time[8:]}-{version}abc-8def-{token_hex(6)}"


async def list_ids(store: MemoryStore, limit: int) -> list[str]:
    found = list[str]()
    async for summary in StoreCatalog(store, USER).walk(lambda _: True, limit):
        found.append(summary.id)
        if len(found) == limit:
            break
    return found


async def test_of_many_conversations_a_short_list_names_the_newest_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conversations, "MANY_NAMES", 20)
    monkeypatch.setattr(conversations, "MAX_FOREIGN_NAMES", 5)
    store = RangeStore()
    names = await index_many(store, 50)
    working = [await begin(store, made_id(int(time() * 1000) - 1000 * age, "7")) for age in (3, 2)]
    foreign = [await begin(store, first + str(uuid4())[1:]) for first in "0f"]
    newest = [*foreign[::-1], *working[::-1], *names[::-1]]  # by the time of their first events
    assert await list_ids(store, 8) == newest[:8]
    assert store.listed < 2 * 30
    missed = await begin(store, made_id(int(time() * 1000) - 80_500, "7"))  # and never indexed
    assert missed not in await list_ids(store, 8)
    everything = await list_ids(store, 1000)
    assert set(everything) == {*newest, missed}
    assert len(everything) == len(newest) + 1
    assert everything[2:] == sorted({*working, *names, missed}, reverse=True)
    some = {summary.id async for summary in StoreCatalog(store, USER).walk(lambda _: True, 8)}
    assert some == {*newest, missed}


@pytest.mark.parametrize("others", ["few", "many before", "many behind"])
async def test_all_conversations_are_listed_where_a_part_of_them_would_not_do(
    monkeypatch: pytest.MonkeyPatch, others: str
) -> None:
    monkeypatch.setattr(conversations, "MANY_NAMES", 20)
    monkeypatch.setattr(conversations, "MAX_FOREIGN_NAMES", 5)
    store = RangeStore()
    names = await index_many(store, 19 if others == "few" else 40)
    first = {"many before": "0", "many behind": "f"}.get(others)
    for nth in range(21 if first else 0):
        await begin(store, f"{first}{nth:07}{str(uuid4())[8:]}")
    newest = await list_newest(store, USER, names, 8)
    assert newest is None
    assert set(await list_ids(store, 100)) == set(await list_candidates(store, USER))


async def test_hidden_and_purged_conversations_make_room_for_older_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conversations, "MANY_NAMES", 20)
    store = RangeStore()
    names = (await index_many(store, 50))[::-1]
    for name in names[:4]:
        await hide_conversation(store, USER, name)
    for key in [key for key in store.objects if names[5] in key and "/conversations/" in key]:
        del store.objects[key]
    assert await list_ids(store, 8) == [names[4], *names[6:13]]


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
