"""The tail that a workflow run left in memory, while other workers write longer ones."""

import pytest

from perdure.storage.log.entry_cache import EntryCache
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.segments import list_ranges, read_tail
from perdure.storage.log.verify import verify
from perdure.storage.store import Store
from tests.storage.made import log_in, origin_by, user_message

RUN = "run-1"


async def append(log: EventLog, first: int, end: int) -> None:
    events = [user_message(f"{seq}") for seq in range(first, end)]
    await log.append(events, base=first, origin=origin_by(f"from {first}", RUN))


def worker(store: Store, conversation: str) -> EventLog:
    return log_in(store, EntryCache(10_000_000), conversation)


async def test_only_an_empty_conversation_is_new(store: Store) -> None:
    log = log_in(store)
    assert await log.is_new(RUN)
    await append(log, 0, 1)
    assert not await worker(store, log.conversation_id).is_new(RUN)


@pytest.mark.long
async def test_a_tail_in_memory_that_others_overtook_does_no_harm(store: Store) -> None:
    first = log_in(store, EntryCache(10_000_000))
    second = worker(store, first.conversation_id)
    assert await first.is_new(RUN)
    await append(first, 0, 3)
    await first.seal(3, run=RUN)
    await append(second, 3, 1_010)  # which fills a segment
    await second.seal(1_010, run=RUN)
    await append(first, 1_010, 1_012)
    await first.seal(1_012, run=RUN)
    holder = (await first.lineage())[0]
    assert await list_ranges(store, holder) == [(0, 1_000)]
    tail = await read_tail(store, holder)
    assert tail is not None
    assert (tail.first, tail.end) == (1_000, 1_012)
    assert [finding async for finding in verify(first) if finding.kind != "note"] == []


async def test_a_new_run_reads_the_tail_that_the_last_one_closed(store: Store) -> None:
    first = log_in(store, EntryCache(10_000_000))
    assert await first.is_new(RUN)
    await append(first, 0, 3)
    await first.seal(3, run=RUN)
    await worker(store, first.conversation_id).seal(3, closing=True, run=RUN)
    await append(first, 3, 5)
    await first.seal(5, closing=True, run="run-2")
    assert await list_ranges(store, (await first.lineage())[0]) == [(0, 3), (3, 5)]


async def test_segments_that_overlap_are_read_once(store: Store) -> None:
    first = log_in(store, EntryCache(10_000_000))
    second = worker(store, first.conversation_id)
    assert await first.is_new(RUN)
    await append(first, 0, 150)
    await second.seal(120, closing=True, run=RUN)
    await first.seal(150, closing=True, run=RUN)
    holder = (await first.lineage())[0]
    assert await list_ranges(store, holder) == [(0, 120), (0, 150)]
    entries = await log_in(store, conversation=first.conversation_id).read(0, 150)
    assert [entry.seq for entry in entries] == list(range(150))
