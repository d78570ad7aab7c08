"""Values that conversations share, on every store: nobody overwrites what he has not seen."""

import asyncio
import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.storage.errors import Altered, StoreUnavailable
from perdure.storage.shared_values import (
    ABSENT,
    ANY,
    MAX_KNOWN_WRITES,
    StateConflict,
    read_shared_value,
    write_shared_value,
)
from perdure.storage.store import Store
from tests.storage.faulty import FaultyStore, choices_from
from tests.storage.memory import MemoryStore

KEY = "user:count"
PLACE = "users/ann/state/count.json"


async def increment(store: Store, writer: str) -> None:
    """Add one to the value, as often as another writer comes first."""
    while True:
        read = await read_shared_value(store, "ann", KEY)
        try:
            new = (read.value or 0) + 1
            await write_shared_value(store, "ann", KEY, new, read.version, writer)
        except StateConflict:
            continue
        return


async def test_a_value_is_read_back_by_its_own_user_alone(store: Store) -> None:
    await write_shared_value(store, "ann", KEY, {"a": ["Ä"]}, ABSENT, "1")
    assert (await read_shared_value(store, "ann", KEY)).value == {"a": ["Ä"]}
    assert (await read_shared_value(store, "bob", KEY)).value is None
    await write_shared_value(store, "ann", "app:motd", "hi", ABSENT, "2")
    assert (await read_shared_value(store, "bob", "app:motd")).value == "hi"


async def test_the_second_of_two_writers_is_told_and_overwrites_nothing(store: Store) -> None:
    before = await read_shared_value(store, "ann", KEY)
    await write_shared_value(store, "ann", KEY, "first", before.version, "1")
    with pytest.raises(StateConflict, match=r'user:count was changed .* now "first"'):
        await write_shared_value(store, "ann", KEY, "second", before.version, "2")
    assert (await read_shared_value(store, "ann", KEY)).value == "first"
    await write_shared_value(store, "ann", KEY, "third", ANY, "3")
    assert (await read_shared_value(store, "ann", KEY)).value == "third"


async def test_a_refusal_that_is_noted_lasts_and_changes_nothing_for_others(store: Store) -> None:
    await write_shared_value(store, "ann", KEY, "first", ABSENT, "1")
    seen = await read_shared_value(store, "ann", KEY)
    for writer in ("2", "3"):
        with pytest.raises(StateConflict):
            await write_shared_value(store, "ann", KEY, "x", ABSENT, writer, notes_refusal=True)
    newest = (await read_shared_value(store, "ann", KEY, "2")).version
    assert newest != seen.version
    with pytest.raises(StateConflict, match='now "first"'):  # an attempt that was late
        await write_shared_value(store, "ann", KEY, "second", newest, "2", notes_refusal=True)
    assert await write_shared_value(store, "ann", KEY, "third", seen.version, "4") == "third"
    with pytest.raises(StateConflict, match='now "third"'):
        await write_shared_value(store, "ann", KEY, "fourth", newest, "5")


async def test_a_write_that_an_earlier_attempt_made_is_not_refused() -> None:
    store = MemoryStore()
    await write_shared_value(store, "ann", KEY, "mine", ABSENT, "1")
    await write_shared_value(store, "ann", KEY, "hers", ANY, "2")
    stale: Any = partial(write_shared_value, store, "ann", KEY, version=ABSENT, write_id="1")
    assert await stale(value="else", notes_refusal=True) == "mine"
    assert (await read_shared_value(store, "ann", KEY)).value == "hers"


async def test_of_writers_side_by_side_each_counts_once(store: Store) -> None:
    await asyncio.gather(*(increment(store, f"writer {number}") for number in range(8)))
    assert (await read_shared_value(store, "ann", KEY)).value == 8


async def test_a_write_that_is_repeated_takes_place_once() -> None:
    store = MemoryStore()
    await write_shared_value(store, "ann", KEY, 5, ABSENT, "before")
    read = await read_shared_value(store, "ann", KEY, "call")
    await write_shared_value(store, "ann", KEY, 6, read.version, "call")
    await increment(store, "another")
    again = await read_shared_value(store, "ann", KEY, "call")
    assert again.value == 5, "a repeat sees what its first attempt saw"
    assert await write_shared_value(store, "ann", KEY, 6, again.version, "call") == 6
    assert (await read_shared_value(store, "ann", KEY)).value == 7


async def test_a_deleted_value_is_none_and_can_be_set_again(store: Store) -> None:
    await write_shared_value(store, "ann", KEY, 1, ABSENT, "1")
    await write_shared_value(store, "ann", KEY, None, ANY, "2")
    deleted = await read_shared_value(store, "ann", KEY)
    assert deleted.value is None
    await write_shared_value(store, "ann", KEY, 2, deleted.version, "3")
    assert (await read_shared_value(store, "ann", KEY)).value == 2


async def test_a_value_of_an_earlier_version_is_read_and_replaced() -> None:
    store = MemoryStore()
    store.objects[PLACE] = b'{"value": 1}'
    read = await read_shared_value(store, "ann", KEY)
    assert read.value == {"value": 1}
    await write_shared_value(store, "ann", KEY, 2, read.version, "1")
    assert (await read_shared_value(store, "ann", KEY)).value == 2


async def test_an_object_names_a_bounded_number_of_writes() -> None:
    store = MemoryStore()
    for number in range(MAX_KNOWN_WRITES + 10):
        await write_shared_value(store, "ann", KEY, "x" * 1000, ANY, f"write {number}")
    assert len(json.loads(store.objects[PLACE])["writes"]) <= 32
    for number in range(10):
        await write_shared_value(store, "ann", KEY, "x" * 30_000, ANY, f"large {number}")
    assert len(store.objects[PLACE]) < 100_000


async def test_a_damaged_object_is_an_error() -> None:
    store = MemoryStore()
    store.objects[PLACE] = b"{"
    with pytest.raises(Altered):
        await read_shared_value(store, "ann", KEY)


@pytest.mark.parametrize("key", ["user:", "user:a/b", "app:../x", "app:a b", "user:" + "x" * 129])
async def test_an_invalid_key_is_refused(key: str) -> None:
    store = MemoryStore()
    with pytest.raises(ValueError, match="cannot be shared"):
        await write_shared_value(store, "ann", key, 1, ANY, "1")
    assert await store.list("") == []


@pytest.mark.parametrize("key", ["user:..", "app:.", "user:a.json"])
async def test_odd_names_of_values_are_allowed(store: Store, key: str) -> None:
    await write_shared_value(store, "ann", key, 1, ANY, "1")
    assert (await read_shared_value(store, "ann", key)).value == 1


@given(st.binary(max_size=200))
async def test_no_write_is_lost_or_made_twice_over_a_network_that_loses_answers(
    fate: bytes,
) -> None:
    memory = MemoryStore()
    store = FaultyStore(memory, choices_from(fate))

    async def count_up(writer: str) -> None:
        for number in range(3):
            write_id = f"{writer} {number}"
            while True:
                try:
                    read = await read_shared_value(store, "ann", KEY, write_id)
                    new = (read.value or 0) + 1
                    await write_shared_value(store, "ann", KEY, new, read.version, write_id)
                    break
                except (StoreUnavailable, StateConflict):
                    continue

    await asyncio.gather(count_up("a"), count_up("b"), count_up("c"))
    assert (await read_shared_value(memory, "ann", KEY)).value == 9
