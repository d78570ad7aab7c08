"""The events of a log by index, slice and id are those of a list, and are read lazily."""

from collections.abc import Iterator
from functools import partial

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import given
from hypothesis import strategies as st

from perdure.client.events.event_list import PAGE_SIZE, EventList
from perdure.client.events.sync_event_list import SyncEventList
from perdure.client.sync import wait_for
from perdure.events.event import AnyEvent
from perdure.storage.errors import Missing
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.fork import fork
from perdure.storage.log.state import read_state
from tests.storage.made import log_in, opened_event, origin_by, user_message
from tests.storage.memory import MemoryStore


class CountingStore(MemoryStore):
    """Counts the events that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    async def read(self, key: str) -> bytes | None:
        body = await super().read(key)
        self.reads += "/events/" in key and body is not None
        return body


async def write_log(length: int, store: MemoryStore | None = None) -> EventLog:
    log = log_in(MemoryStore() if store is None else store)
    events: list[AnyEvent] = [user_message(f"{number}") for number in range(1, length)]
    await log.append([opened_event("run-1"), *events][:length], base=0, origin=origin_by("1"))
    return log


async def events_of(log: EventLog) -> list[AnyEvent]:
    return [entry.event for entry in await log.read(0, 10_000)]


@pytest.fixture(scope="module")
def portal() -> Iterator[BlockingPortal]:
    with start_blocking_portal() as opened:
        yield opened


def as_sequence(log: EventLog, portal: BlockingPortal) -> SyncEventList:
    return SyncEventList(EventList(log), partial(wait_for, portal))


bounds = st.none() | st.integers(-15, 15)


@given(
    length=st.integers(0, 12),
    start=bounds,
    stop=bounds,
    step=st.none() | st.integers(-4, 4).filter(bool),
)
def test_every_slice_is_that_of_a_list(
    portal: BlockingPortal, length: int, start: int | None, stop: int | None, step: int | None
) -> None:
    log = portal.call(write_log, length)
    listed = as_sequence(log, portal)
    assert listed[start:stop:step] == portal.call(events_of, log)[start:stop:step]


@given(length=st.integers(0, 5), index=st.integers(-7, 7) | st.just(10**7))
def test_every_index_is_that_of_a_list(portal: BlockingPortal, length: int, index: int) -> None:
    log = portal.call(write_log, length)
    events, listed = portal.call(events_of, log), as_sequence(log, portal)
    if -length <= index < length:
        assert listed[index] == events[index]
    else:
        with pytest.raises(IndexError):
            listed[index]


def test_a_log_is_a_sequence(portal: BlockingPortal) -> None:
    log = portal.call(write_log, 2 * PAGE_SIZE + 1)
    events, listed = portal.call(events_of, log), as_sequence(log, portal)
    assert len(listed) == 2 * PAGE_SIZE + 1
    assert list(listed) == events
    assert events[7] in listed
    assert listed.get_index(events[150].id) == 150
    assert listed.find(events[-1].id) == events[-1]
    with pytest.raises(KeyError):
        listed.get_index("evt-abc123")


@pytest.mark.parametrize("length", [0, 1, PAGE_SIZE, PAGE_SIZE + 1])
async def test_an_iteration_yields_every_event_in_order(length: int) -> None:
    log = await write_log(length)
    assert [event async for event in EventList(log)] == await events_of(log)


async def test_the_newest_events_are_read_and_no_others() -> None:
    log = await write_log(300, store := CountingStore())
    store.reads = 0
    newest = await EventList(log).read(-10)
    assert [event.id for event in newest] == [entry.event.id for entry in await log.read(290, 10)]
    assert store.reads == 20


async def test_counting_and_finding_an_index_read_no_event() -> None:
    log = await write_log(300, store := CountingStore())
    name = (await log.get(299)).event.id
    store.reads = 0
    events = EventList(log)
    assert (await events.length(), await events.get_index(name)) == (300, 299)
    assert store.reads == 0


async def test_an_event_that_is_written_later_is_found() -> None:
    log = await write_log(3)
    events = EventList(log)
    assert (await events.length(), await events.get_index((await events.get(2)).id)) == (3, 2)
    [entry] = await log.append([user_message("More.")], base=3, origin=origin_by("2"))
    assert await events.get(-1) == entry.event
    assert await events.get_index(entry.event.id) == 3
    assert await events.length() == 4


async def test_the_ids_before_a_fork_are_those_of_the_first_conversation() -> None:
    parent = await write_log(4)
    child = log_in(parent.store)
    await fork(parent, child, await read_state(parent), [user_message("Else.")])
    events = EventList(child)
    ids = [event.id async for event in events]
    assert ids[:4] == [event.id async for event in EventList(parent)]
    assert [await events.get_index(name) for name in ids] == [0, 1, 2, 3, 4]


async def test_a_lost_event_is_named_and_no_end_of_the_log() -> None:
    log = await write_log(5, store := CountingStore())
    [key] = [key for key in store.objects if "/events/000002_" in key]
    del store.objects[key]
    with pytest.raises(Missing, match="2"):
        await EventList(log).get(2)
    with pytest.raises(IndexError):
        await EventList(log).get(5)
