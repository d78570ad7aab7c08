"""Reading a log, intact or damaged, on every store."""

import asyncio

import pytest

from perdure.events.entry import Entry
from perdure.storage.errors import Altered, Damaged, Missing, StoreError, StoreUnavailable
from perdure.storage.log.entry_cache import EntryCache
from perdure.storage.log.event_log import EventLog
from perdure.storage.store import Store
from tests.storage.made import log_in, opened_event, origin_by, texts, user_message
from tests.storage.memory import MemoryStore

MORE_THAN_TWO_BATCHES = 70  # more than are asked for at once, twice


async def fill(log: EventLog, count: int, first: int = 0) -> list[Entry]:
    events = [user_message(f"{number}") for number in range(first, first + count)]
    return await log.append(events, base=first, origin=origin_by(f"from {first}"))


async def replace_object(log: EventLog, seq: int, body: bytes) -> None:
    keys = await log.store.list("users/")
    [key] = [key for key in keys if f"{log.conversation_id}/events/{seq:06d}_" in key]
    await log.store.replace(key, body)


class LossyStore(MemoryStore):
    def lose(self, seq: int) -> None:
        [key] = [key for key in self.objects if f"/events/{seq:06d}_" in key]
        del self.objects[key]


async def test_a_range_is_read_in_order(store: Store) -> None:
    log = log_in(store)
    written = await fill(log, MORE_THAN_TWO_BATCHES)
    assert await log.read(0, MORE_THAN_TWO_BATCHES) == written
    assert await log.read(0, 1000) == written
    assert await log.read(3, 40) == written[3:43]
    assert await log.read(MORE_THAN_TWO_BATCHES, 10) == []
    assert await log.read(MORE_THAN_TWO_BATCHES + 50, 10) == []


class CountingStore(MemoryStore):
    """A store that counts its reads."""

    reads = 0

    async def read(self, key: str) -> bytes | None:
        self.reads += 1
        await asyncio.sleep(0)
        return await super().read(key)


class AlteringStore(MemoryStore):
    """A store behind a network that alters the first object that is read."""

    is_altered = False

    async def read(self, key: str) -> bytes | None:
        body = await super().read(key)
        if body is None or self.is_altered or "/events/" not in key:
            return body
        self.is_altered = True
        return body.replace(b"message", b"massage", 1)


async def test_an_event_that_was_altered_on_its_way_is_read_again() -> None:
    store = AlteringStore()
    log = log_in(store)
    [written] = await fill(log, 1)
    assert await log_in(store, conversation=log.conversation_id).get(0) == written
    assert store.is_altered


@pytest.mark.parametrize(("events", "most"), [(0, 6), (10, 24), (40, 80), (300, 370)])
async def test_few_slots_behind_the_end_are_read(events: int, most: int) -> None:
    store = CountingStore()
    log = log_in(store)
    await fill(log, events)
    store.reads = 0
    assert len(await log.read(0, 99_999)) == events
    assert store.reads <= most


@pytest.mark.long
async def test_segments_are_read_in_place_of_their_slots(store: Store) -> None:
    written = await fill(log_in(store, EntryCache(10_000_000)), 1_100)
    log = log_in(store, EntryCache(10_000_000), await only_conversation(store))
    await log.seal(1_050, closing=True)
    for seq in (0, 999, 1_049):
        await store.replace((await log.lineage())[0].key(seq), b"never read")
    fresh = log_in(store, conversation=log.conversation_id)
    assert await fresh.read(0, 1_200) == written
    assert await fresh.read(500, 560) == written[500:1_060]


async def test_an_empty_log_is_read_as_nothing(store: Store) -> None:
    log = log_in(store)
    assert await log.read(0, 10) == []
    assert await log.read_newest(10) == []
    assert await log.end() == 0
    assert await log.find(0) is None
    with pytest.raises(Missing):
        await log.get(0)


async def test_the_newest_entries_come_first(store: Store) -> None:
    log = log_in(store)
    await fill(log, 5)
    assert texts(await log.read_newest(3)) == ["4", "3", "2"]
    assert texts(await log.read_newest(30)) == ["4", "3", "2", "1", "0"]


@pytest.mark.parametrize("hint", [0, 1, 3, 5, 6, 900])
async def test_the_end_of_a_log_is_found_with_any_hint(store: Store, hint: int) -> None:
    log = log_in(store)
    await fill(log, 5)
    assert await log.end(hint) == 5


async def test_the_end_of_a_log_is_found_behind_more_than_one_page_of_keys() -> None:
    log = log_in(MemoryStore())
    await fill(log, 2005)
    assert [await log.end(hint) for hint in (0, 1, 1004, 2005)] == [2005] * 4


async def test_foreign_objects_are_not_counted_as_events(store: Store) -> None:
    log = log_in(store)
    await fill(log, 2)
    prefix = f"users/somebody/conversations/{log.conversation_id}/events/"
    for name in ("000007_with-another-id.json", "notes.txt", "999999"):
        await store.create(prefix + name, b"")
    assert await log.end() == 2
    assert len(await log.read(0, 10)) == 2


async def test_a_missing_object_is_named_and_the_rest_is_readable() -> None:
    store = LossyStore()
    log = log_in(store)
    written = await fill(log, MORE_THAN_TWO_BATCHES)
    for lost in (3, 40):
        store.lose(lost)
    assert await log.end() == MORE_THAN_TWO_BATCHES
    assert await log.end(hint=41) == MORE_THAN_TWO_BATCHES
    slots = await log.read_slots(0, 1000)
    assert [slot.seq for slot in slots if isinstance(slot, Missing)] == [3, 40]
    assert [slot for slot in slots if isinstance(slot, Entry)] == [
        entry for entry in written if entry.seq not in (3, 40)
    ]
    with pytest.raises(Missing, match="The object of seq 3 is missing: restore users/") as caught:
        await log.read(0, 1000)
    assert caught.value.seq == 3


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"\xff\xfe", b'{"kind": "PauseEvent"}', b'{"origin": {"run": "r"}}'],
)
async def test_a_damaged_object_is_named_and_the_rest_is_readable(
    store: Store, body: bytes
) -> None:
    log = log_in(store)
    written = await fill(log, 4)
    await replace_object(log, 2, body)
    with pytest.raises(Damaged, match=r"The object of seq 2 is damaged: restore users/") as caught:
        await log.read(0, 10)
    assert caught.value.seq == 2
    slots = await log.read_slots(0, 10)
    assert [type(slot) for slot in slots] == [Entry, Entry, Damaged, Entry]
    assert slots[3] == written[3]


async def test_an_object_that_was_put_into_another_slot_is_damaged(store: Store) -> None:
    log = log_in(store)
    written = await fill(log, 3)
    await replace_object(log, 1, written[2].body)
    with pytest.raises(Damaged, match="seq 1"):
        await log.get(1)


@pytest.mark.long
async def test_a_concurrent_reader_sees_no_gap(store: Store) -> None:
    log = log_in(store)
    writing = asyncio.create_task(fill(log, MORE_THAN_TWO_BATCHES))
    seen = 0
    while seen < MORE_THAN_TWO_BATCHES:
        entries = await log.read(0, 1000)  # never raises Missing
        assert len(entries) >= seen
        seen = len(entries)
    await writing


async def test_a_tail_yields_each_event_as_it_comes(store: Store) -> None:
    log = log_in(store)
    await fill(log, 3)
    tail = log.tail(after=0)
    assert texts([await anext(tail), await anext(tail)]) == ["1", "2"]
    coming = asyncio.ensure_future(anext(tail))
    await asyncio.sleep(0)
    await fill(log, 1, first=3)
    assert texts([await coming]) == ["3"]
    await tail.aclose()


class OutOfReachStore(MemoryStore):
    """A store that does not answer the next `failures` reads."""

    failures = 0

    async def read(self, key: str) -> bytes | None:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("nobody answers")
        return await super().read(key)


async def test_a_tail_outlives_an_outage_of_the_store() -> None:
    store = OutOfReachStore()
    log = log_in(store)
    await fill(log, 2)
    tail = log.tail()
    assert texts([await anext(tail)]) == ["0"]
    store.failures = 2
    assert texts([await anext(tail)]) == ["1"]
    await tail.aclose()


async def test_a_tail_gives_up_after_a_long_outage_of_the_store() -> None:
    store = OutOfReachStore()
    log = log_in(store)
    await fill(log, 1)
    store.failures = 1000
    with pytest.raises(StoreUnavailable, match="nobody answers"):
        await anext(log.tail(patience=0.6))
    assert store.failures < 999, "it tried more than once"


async def test_a_tail_ends_after_the_last_event_before_it_was_idle(store: Store) -> None:
    log = log_in(store)
    await fill(log, 2)

    async def closed() -> bool:
        await log.append([opened_event("last")], base=2, origin=origin_by("closing"))
        return True

    seen = [entry async for entry in log.tail(is_idle=closed)]
    assert texts(seen) == ["0", "1", "ConversationStateUpdateEvent"]


async def test_a_tail_stops_at_a_damaged_event_and_continues_behind_it(store: Store) -> None:
    log = log_in(store)
    await fill(log, 3)
    await replace_object(log, 1, b"{")
    tail = log.tail()
    assert texts([await anext(tail)]) == ["0"]
    with pytest.raises(Damaged) as caught:
        await anext(tail)
    behind = log.tail(after=caught.value.seq)
    assert texts([await anext(behind)]) == ["2"]
    await behind.aclose()


async def test_an_entry_is_read_from_the_store_once(store: Store) -> None:
    written = await fill(log_in(store), 1)
    log = log_in(store, EntryCache(1_000_000), await only_conversation(store))
    first = await log.get(0)
    assert first == written[0]
    assert await log.get(0) is first


async def only_conversation(store: Store) -> str:
    [conversation_id] = await store.folders("users/somebody/conversations/")
    return conversation_id


async def test_an_altered_blob_is_not_returned(store: Store) -> None:
    log = log_in(store)
    key = await log.store_blob(b"what was said")
    [place] = await store.list("users/")
    await store.replace(place, b"what was never said")
    with pytest.raises(Altered, match="is not what was written: restore it"):
        await log.read_blob(key)


@pytest.mark.parametrize("key", ["base_state.json", "blobs/../base_state.json", "blobs/ab", ""])
async def test_only_blobs_are_read_as_blobs(store: Store, key: str) -> None:
    with pytest.raises(ValueError, match="is not the key of a blob"):
        await log_in(store).read_blob(key)


async def test_all_errors_of_a_store_are_of_one_family() -> None:
    assert issubclass(Damaged, StoreError)
    assert issubclass(Missing, StoreError)
