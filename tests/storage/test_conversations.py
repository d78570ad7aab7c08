"""Listing a user's conversations."""

import asyncio
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from perdure.storage.conversations import conversation_exists, list_ages, list_conversations
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.purge import purge
from perdure.storage.store import Store
from perdure.storage.summaries import summarize
from tests.storage.made import origin_by, user_message
from tests.storage.memory import MemoryStore


def uuid_at(moment: int) -> str:
    """Return a UUIDv7 of that millisecond."""
    time = f"{moment:012x}"
    return f"{time[:8]}-{time[8:]}-7{uuid4().hex[:3]}-8{uuid4().hex[:3]}-{uuid4().hex[:12]}"


async def begin(store: Store, user_id: str, conversation_id: str) -> None:
    log = EventLog(store, user_id, conversation_id)
    await log.append([user_message("hello")], base=0, origin=origin_by("a"))


async def test_the_newest_conversation_comes_first(store: Store) -> None:
    ids = [uuid_at(moment) for moment in (1, 20, 300, 4000)]
    await asyncio.gather(*(begin(store, "ada", conversation_id) for conversation_id in ids))
    await begin(store, "ada-2", uuid_at(5))
    assert await list_conversations(store, "ada", 3) == [ids[3], ids[2], ids[1]]
    assert await list_conversations(store, "ada", 100) == ids[::-1]
    assert await list_conversations(store, "nobody", 100) == []


async def test_an_id_of_a_year_that_no_calendar_has_is_listed(store: Store) -> None:
    far, near = uuid_at((1 << 48) - 1), uuid_at(1)
    await begin(store, "ada", far)
    await begin(store, "ada", near)
    assert set(await list_conversations(store, "ada", 10)) == {far, near}
    assert {name for _, name in await list_ages(store, "ada")} == {far, near}


async def test_an_id_that_holds_no_time_stands_where_its_first_event_puts_it(store: Store) -> None:
    moments = ["2026-01-01T00:00:00.000000", "2026-01-03T00:00:00.000000"]
    early, late = (str(uuid4()) for _ in moments)
    for name, moment in ((early, moments[0]), (late, moments[1])):
        log = EventLog(store, "ada", name)
        await log.append([user_message("hello", moment)], base=0, origin=origin_by("a"))
    between = uuid_at(int(datetime(2026, 1, 2, tzinfo=UTC).timestamp() * 1000))
    await begin(store, "ada", between)
    empty = str(uuid4())
    await store.create(f"users/ada/conversations/{empty}/base_state.json", b"")
    assert await list_conversations(store, "ada", 10) == [late, between, early, empty]
    summary = await summarize(store, "ada", late)
    assert summary is not None
    assert summary.begun == "2026-01-03T00:00:00.000+00:00"


async def test_a_folder_without_a_conversation_id_is_skipped(store: Store) -> None:
    conversation_id = uuid_at(1)
    await begin(store, "ada", conversation_id)
    await store.create("users/ada/conversations/zzz/notes.txt", b"")
    assert await list_conversations(store, "ada", 10) == [conversation_id]


@pytest.mark.parametrize("count", [999, 1000, 1001, 2000])
async def test_the_newest_conversations_are_found_behind_thousands(count: int) -> None:
    store = MemoryStore()
    ids = [uuid_at(moment) for moment in range(count)]
    for conversation_id in ids:
        await store.create(f"users/ada/conversations/{conversation_id}/base_state.json", b"")
    assert await list_conversations(store, "ada", 2) == [ids[-1], ids[-2]]


async def test_a_conversation_exists_from_its_first_event_on(store: Store) -> None:
    conversation_id = uuid_at(1)
    assert not await conversation_exists(store, "ada", conversation_id)
    await begin(store, "ada", conversation_id)
    assert await conversation_exists(store, "ada", conversation_id)
    assert not await conversation_exists(store, "eve", conversation_id)


async def test_a_purged_conversation_is_no_longer_listed(store: Store) -> None:
    """Also by a store that names a folder for a while after it was emptied."""
    ids = [uuid_at(moment) for moment in (1, 20, 300)]
    for conversation_id in ids:
        await begin(store, "ada", conversation_id)
    await purge(EventLog(store, "ada", ids[1]))
    assert await list_conversations(store, "ada", 2) == [ids[2], ids[0]]
