"""A cached state stands for the events before it only where it was folded from these events."""

import asyncio
import re
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.agent.loop.evolve import fold
from perdure.agent.loop.state import FOLD_VERSION, State
from perdure.events.entry import Entry
from perdure.events.projection import summarize
from perdure.storage.errors import Damaged
from perdure.storage.keys import LAST_SEQ, segment_key
from perdure.storage.log.cached_state import CachedState, encode_cached_state, parse_cached_state
from perdure.storage.log.entry_cache import EntryCache
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import read_state
from perdure.storage.log.verify import check_integrity
from tests.builders import CONVERSATION
from tests.logs import condensed_logs, logs
from tests.storage.log.test_fork import fill, make_fork
from tests.storage.made import log_in, origin_by, user_message
from tests.storage.memory import MemoryStore

BEFORE, AFTER, NOBODY = "run-before", "run-after", "run-of-nobody"
MARK = "only the cached state has this title"


def fold_all(entries: Sequence[Entry]) -> State:
    return fold(State(), [summarize(entry) for entry in entries])


def as_cold(log: EventLog) -> EventLog:
    return log_in(log.store, conversation=log.conversation_id)


async def store_log(entries: Sequence[Entry], run_ends: int) -> EventLog:
    """Store these events; those from slot `run_ends` on are another run's."""
    log = log_in(MemoryStore(), EntryCache(10_000_000), CONVERSATION)
    for entry in entries:
        origin = origin_by(f"{entry.seq}", BEFORE if entry.seq < run_ends else AFTER)
        await log.append([entry.event], base=entry.seq, origin=origin, usage=entry.usage)
    return log


async def mark_state(log: EventLog, end: int, **fields: Any) -> State:
    """Save a state of the first `end` slots that no fold would make, so that its use shows."""
    state = fold_all(await as_cold(log).read(0, end)).model_copy(update={"title": MARK, **fields})
    await log.save_state(encode_cached_state(state))
    return state


@pytest.mark.long
@given(logs | condensed_logs, st.data())
@settings(max_examples=60, deadline=None)
def test_the_state_from_a_cached_one_is_the_fold_of_all_events(
    entries: list[Entry], data: st.DataObject
) -> None:
    asyncio.run(_compare_with_fold(entries, data))


async def _compare_with_fold(entries: list[Entry], data: st.DataObject) -> None:
    run_ends = data.draw(st.integers(0, len(entries)), label="first slot of the other run")
    end = data.draw(st.integers(0, len(entries)), label="slots of the cached state")
    log = await store_log(entries, run_ends)
    written = await log.read(0, len(entries))
    body = encode_cached_state(fold_all(written[:end]))
    altered = bytearray(body)
    altered[data.draw(st.integers(0, len(body) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    for cached in (body, bytes(altered), body[: data.draw(st.integers(0, len(body)))]):
        await log.save_state(cached)
        for reader in (log, as_cold(log)):
            assert await read_state(reader, NOBODY) == fold_all(written)
            assert await read_state(reader, AFTER) == fold_all(written[:run_ends])
            assert await read_state(reader, BEFORE) == (State() if run_ends else fold_all(written))


@given(st.data())
def test_no_altered_state_is_own(data: st.DataObject) -> None:
    state = State(
        next_seq=7, sha="a" * 32, fold_version=FOLD_VERSION, message_seqs={"m": 3}, title="t"
    )
    body = encode_cached_state(state)
    assert parse_cached_state(body).is_own
    altered = bytearray(body)
    altered[data.draw(st.integers(0, len(body) - 1))] ^= data.draw(st.integers(1, 255))
    for spoilt in (bytes(altered), body[: data.draw(st.integers(0, len(body) - 1))], body + b"}"):
        assert parse_cached_state(spoilt) == CachedState()


def test_a_cached_state_begins_with_its_checksum_and_the_version() -> None:
    state = State(next_seq=3, sha="b" * 32, fold_version=1)
    body = encode_cached_state(state)
    begin = rb'\{"checksum":"[0-9a-f]{32}","version":"%b","next_seq":3,'
    assert re.match(begin % re.escape(version("perdure").encode()), body)
    assert parse_cached_state(body) == CachedState(state, version("perdure"))


def test_a_state_of_an_older_version_is_read_and_is_not_own() -> None:
    state = State(next_seq=3, sha="b" * 32, title="t")
    cached = parse_cached_state(state.model_dump_json().encode())
    assert cached.state == state
    assert not cached.is_own


@pytest.mark.parametrize("next_seq", [-1, LAST_SEQ + 2])
def test_a_state_of_an_impossible_number_of_events_is_none(next_seq: int) -> None:
    body = encode_cached_state(State(next_seq=next_seq, fold_version=1))
    assert parse_cached_state(body) == CachedState()


async def long_log(run: str = BEFORE) -> EventLog:
    """A log of 1,300 events, with a segment for each thousand."""
    log = log_in(MemoryStore(), EntryCache(10_000_000))
    for base in range(0, 1300, 100):
        events = [user_message(f"message {base + nth}") for nth in range(100)]
        await log.append(events, base=base, origin=origin_by(f"{base}", run))
    await log.seal(1300)
    return log


async def test_a_state_of_these_events_is_used_and_only_later_events_are_folded() -> None:
    log = await long_log()
    marked = await mark_state(log, 1200)
    rest = [summarize(entry) for entry in await log.read(1200, 100)]
    for reader in (log, as_cold(log)):
        assert await read_state(reader, NOBODY) == fold(marked, rest)
    assert (await read_state(as_cold(log), BEFORE)) == State()


@pytest.mark.long
@pytest.mark.parametrize(
    "fields",
    [{"sha": "0" * 32}, {"fold_version": 0}, {"fold_version": 999}, {"next_seq": 1199}],
    ids=str,
)
async def test_a_state_of_other_events_or_another_fold_is_not_used(fields: dict[str, Any]) -> None:
    log = await long_log()
    await mark_state(log, 1200, **fields)
    assert await read_state(as_cold(log), NOBODY) == fold_all(await log.read(0, 1300))


async def test_a_state_of_another_version_is_not_used() -> None:
    log = await long_log()
    state = await mark_state(log, 1200)
    assert await read_state(as_cold(log), NOBODY) != fold_all(await log.read(0, 1300))
    await log.save_state(state.model_dump_json().encode())
    assert await read_state(as_cold(log), NOBODY) == fold_all(await log.read(0, 1300))


@pytest.mark.long
async def test_a_state_of_another_log_of_as_many_events_is_not_used() -> None:
    log, other = await long_log(), await long_log()
    await mark_state(other, 1200)
    await log.save_state(await other.load_state() or b"")
    assert await read_state(as_cold(log), NOBODY) == fold_all(await log.read(0, 1300))


async def test_a_state_of_more_events_than_there_are_is_not_used() -> None:
    log = await long_log()
    await mark_state(log, 1300, next_seq=1301)
    assert await read_state(as_cold(log), NOBODY) == fold_all(await log.read(0, 1300))


@pytest.mark.long
async def test_a_state_with_a_lost_or_altered_event_is_not_used() -> None:
    log = await long_log()
    await mark_state(log, 1300)
    key = f"{log.prefix}{segment_key(0, 1000)}"
    for body in (None, b"{}\n"):
        await log.store.replace(key, body or b"")
        assert (await read_state(as_cold(log), NOBODY)).title == MARK, "the slots themselves do"
    entry = await log.get(1250)
    slot = log.prefix + f"events/001250_{entry.event.id}.json"
    await log.store.replace(slot, entry.body.replace(b"message 1250", b"message 7777"))
    with pytest.raises(Damaged, match="seq 1250"):
        await read_state(as_cold(log), NOBODY)
    other = await long_log()
    await log.store.replace(key, await other.store.read(other.prefix + segment_key(0, 1000)) or b"")
    with pytest.raises(Damaged):
        await read_state(as_cold(log), NOBODY)


async def test_a_fork_uses_its_state_and_not_its_parents() -> None:
    parent = await long_log()
    child = await make_fork(parent, 1099, "on", "and on")
    await fill(child, 3, first=1102, run=BEFORE)
    whole = fold_all(await child.read(0, 2000))
    assert await read_state(as_cold(child), NOBODY) == whole
    await mark_state(child, 1104)
    assert (await read_state(as_cold(child), NOBODY)).title == MARK
    await mark_state(parent, 1104)
    await child.save_state(await parent.load_state() or b"")
    assert await read_state(as_cold(child), NOBODY) == whole


class CountingStore(MemoryStore):
    """Counts the reads of slots and of segments."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        super().__init__()
        self.objects = objects
        self.slots = self.segments = self.others = 0

    async def read(self, key: str) -> bytes | None:
        self.slots += "/events/" in key
        self.segments += "/segments/0" in key
        self.others += "/events/" not in key and "/segments/0" not in key
        return await super().read(key)


async def test_opening_reads_each_slot_and_each_object_beside_them_once() -> None:
    log = log_in(MemoryStore())
    await fill(log, 20)
    await mark_state(log, 20)
    await log.seal(20)
    assert isinstance(log.store, MemoryStore)
    store = CountingStore(log.store.objects)
    opening = log_in(store, EntryCache(10_000_000), log.conversation_id)
    checked = await check_integrity(opening)
    assert (await read_state(opening, NOBODY, checked.end, checked.cached)).title == MARK
    assert store.slots == 20
    assert store.segments == 0
    assert store.others == 4, (
        "whether it is a fork, the state, and the tail to check and to compare"
    )


async def test_an_opening_folds_no_slot_that_its_state_covers() -> None:
    log = await long_log()
    await mark_state(log, 1300)
    assert isinstance(log.store, MemoryStore)
    store = CountingStore(log.store.objects)
    opening = log_in(store, EntryCache(10_000_000), log.conversation_id)
    checked = await check_integrity(opening)
    newest = store.slots
    assert (await read_state(opening, NOBODY, checked.end, checked.cached)).title == MARK
    assert store.slots == newest, "the check has read what no segment has"
    assert opening.cache is not None
    assert opening.cache.get((log.user_id, log.conversation_id, 0)) is None
