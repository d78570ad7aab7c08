"""Reading a log, whole or not, on every store there is."""

import asyncio

import pytest

from events.entry import Entry
from storage.cache import EntryCache
from storage.errors import Altered, Damaged, Missing, StoreError
from storage.log import EventLog
from storage.store import Store
from tests.storage.made import by, log_in, opened, said, texts
from tests.storage.memory import MemoryStore

MANY = 70  # more than are asked for at once, twice


async def filled(log: EventLog, count: int, first: int = 0) -> list[Entry]:
    events = [said(f"{number}") for number in range(first, first + count)]
    return await log.append(events, base=first, origin=by(f"from {first}"))


async def spoil(log: EventLog, seq: int, body: bytes) -> None:
    keys = await log.store.list("users/")
    [key] = [key for key in keys if f"{log.conversation_id}/events/{seq:06d}_" in key]
    await log.store.replace(key, body)


class LossyStore(MemoryStore):
    def lose(self, seq: int) -> None:
        [key] = [key for key in self.objects if f"/events/{seq:06d}_" in key]
        del self.objects[key]


async def test_a_range_is_read_in_order(store: Store) -> None:
    log = log_in(store)
    written = await filled(log, MANY)
    assert await log.read(0, MANY) == written
    assert await log.read(0, 1000) == written
    assert await log.read(3, 40) == written[3:43]
    assert await log.read(MANY, 10) == []
    assert await log.read(MANY + 50, 10) == []


async def test_an_empty_log_is_read_as_nothing(store: Store) -> None:
    log = log_in(store)
    assert await log.read(0, 10) == []
    assert await log.newest(10) == []
    assert await log.end() == 0
    assert await log.find(0) is None
    with pytest.raises(Missing):
        await log.at(0)


async def test_the_newest_come_first(store: Store) -> None:
    log = log_in(store)
    await filled(log, 5)
    assert texts(await log.newest(3)) == ["4", "3", "2"]
    assert texts(await log.newest(30)) == ["4", "3", "2", "1", "0"]


@pytest.mark.parametrize("hint", [0, 1, 3, 5, 6, 900])
async def test_the_end_is_found_whatever_the_hint(store: Store, hint: int) -> None:
    log = log_in(store)
    await filled(log, 5)
    assert await log.end(hint) == 5


async def test_the_end_is_found_behind_more_than_one_page() -> None:
    log = log_in(MemoryStore())
    await filled(log, 2005)
    assert [await log.end(hint) for hint in (0, 1, 1004, 2005)] == [2005] * 4


async def test_what_a_log_did_not_write_is_not_counted(store: Store) -> None:
    log = log_in(store)
    await filled(log, 2)
    prefix = f"users/somebody/conversations/{log.conversation_id}/events/"
    for name in ("000007_with-another-id.json", "notes.txt", "999999"):
        await store.create(prefix + name, b"")
    assert await log.end() == 2
    assert len(await log.read(0, 10)) == 2


async def test_a_missing_object_is_named_and_the_rest_is_readable() -> None:
    store = LossyStore()
    log = log_in(store)
    written = await filled(log, MANY)
    for lost in (3, 40):
        store.lose(lost)
    assert await log.end() == MANY
    assert await log.end(hint=41) == MANY
    found = await log.readable(0, 1000)
    assert [slot.seq for slot in found if isinstance(slot, Missing)] == [3, 40]
    assert [slot for slot in found if isinstance(slot, Entry)] == [
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
    written = await filled(log, 4)
    await spoil(log, 2, body)
    with pytest.raises(Damaged, match=r"The object of seq 2 is damaged: restore users/") as caught:
        await log.read(0, 10)
    assert caught.value.seq == 2
    found = await log.readable(0, 10)
    assert [type(slot) for slot in found] == [Entry, Entry, Damaged, Entry]
    assert found[3] == written[3]


async def test_an_object_that_was_put_into_another_slot_is_damaged(store: Store) -> None:
    log = log_in(store)
    written = await filled(log, 3)
    await spoil(log, 1, written[2].body)
    with pytest.raises(Damaged, match="seq 1"):
        await log.at(1)


@pytest.mark.long
async def test_a_reader_beside_a_writer_sees_no_hole(store: Store) -> None:
    log = log_in(store)
    writing = asyncio.create_task(filled(log, MANY))
    seen = 0
    while seen < MANY:
        found = await log.read(0, 1000)  # never raises Missing
        assert len(found) >= seen
        seen = len(found)
    await writing


async def test_a_tail_shows_each_event_as_it_comes(store: Store) -> None:
    log = log_in(store)
    await filled(log, 3)
    tail = log.tail(after=0)
    assert texts([await anext(tail), await anext(tail)]) == ["1", "2"]
    coming = asyncio.ensure_future(anext(tail))
    await asyncio.sleep(0)
    await filled(log, 1, first=3)
    assert texts([await coming]) == ["3"]
    await tail.aclose()


async def test_a_tail_ends_after_the_last_event_before_it_was_idle(store: Store) -> None:
    log = log_in(store)
    await filled(log, 2)

    async def closed() -> bool:
        await log.append([opened("last")], base=2, origin=by("closing"))
        return True

    seen = [entry async for entry in log.tail(idle=closed)]
    assert texts(seen) == ["0", "1", "ConversationStateUpdateEvent"]


async def test_a_tail_stops_at_damage_and_goes_on_behind_it(store: Store) -> None:
    log = log_in(store)
    await filled(log, 3)
    await spoil(log, 1, b"{")
    tail = log.tail()
    assert texts([await anext(tail)]) == ["0"]
    with pytest.raises(Damaged) as caught:
        await anext(tail)
    behind = log.tail(after=caught.value.seq)
    assert texts([await anext(behind)]) == ["2"]
    await behind.aclose()


async def test_an_entry_is_read_from_the_store_once(store: Store) -> None:
    written = await filled(log_in(store), 1)
    log = log_in(store, EntryCache(1_000_000), await only_conversation(store))
    first = await log.at(0)
    assert first == written[0]
    assert await log.at(0) is first


async def only_conversation(store: Store) -> str:
    [conversation_id] = await store.folders("users/somebody/conversations/")
    return conversation_id


async def test_an_altered_blob_is_not_shown(store: Store) -> None:
    log = log_in(store)
    key = await log.keep(b"what was said")
    [place] = await store.list("users/")
    await store.replace(place, b"what was never said")
    with pytest.raises(Altered, match="is not what was written: restore it"):
        await log.kept(key)


@pytest.mark.parametrize("key", ["base_state.json", "blobs/../base_state.json", "blobs/ab", ""])
async def test_only_blobs_are_read_as_blobs(store: Store, key: str) -> None:
    with pytest.raises(ValueError, match="is not the key of a blob"):
        await log_in(store).kept(key)


async def test_all_errors_of_a_store_are_of_one_family() -> None:
    assert issubclass(Damaged, StoreError)
    assert issubclass(Missing, StoreError)
