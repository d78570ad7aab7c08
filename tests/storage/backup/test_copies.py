"""Copies of stores: whole, repeated, and as they were at a moment."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.events.base import TIMESTAMP_FORMAT
from perdure.storage import keys
from perdure.storage.backup.objects import Copied
from perdure.storage.backup.stores import copy_store
from perdure.storage.discussions.service import EventLogService
from perdure.storage.discussions.verify import verify_discussion
from perdure.storage.log.cached_state import encode_cached_state
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import read_state
from perdure.storage.log.verify import verify
from perdure.storage.store import Store, list_keys
from tests.storage.discussions.session import FOLDER, SESSION
from tests.storage.discussions.session import fill as fill_discussion
from tests.storage.log.test_event_log import completion
from tests.storage.log.test_fork import make_fork
from tests.storage.made import log_in, origin_by, texts, user_message
from tests.storage.memory import MemoryStore

BEGIN = datetime(2026, 11, 25, 12, tzinfo=UTC)
END = BEGIN + timedelta(days=30)


def stamp(second: float) -> str:
    return (BEGIN + timedelta(seconds=second)).strftime(TIMESTAMP_FORMAT)


async def write(log: EventLog, first: int, *seconds: int) -> None:
    """Write an event for each of the seconds behind the slots that are there."""
    events = [user_message(f"at {second}", at=stamp(second)) for second in seconds]
    await log.append(events, base=first, origin=origin_by(f"from {first}"))


async def save_caches(log: EventLog) -> None:
    """Save what readers find beside the events of a log."""
    await log.save_state(encode_cached_state(await read_state(log)))
    await log.store.replace(log.prefix + keys.LLM_MESSAGES, b"[]")


async def copy(source: Store, target: Store, moment: datetime = END) -> Copied:
    return await copy_store(source, target, moment, lambda _: None)


async def find_damage(store: Store, log: EventLog) -> list[str]:
    fresh = EventLog(store, log.user_id, log.conversation_id)
    return [f"{it.key}: {it.detail}" async for it in verify(fresh) if it.kind != "note"]


async def all_keys(store: Store) -> list[str]:
    return [key async for key in list_keys(store, "")]


async def fill_store(store: Store) -> EventLog:
    """Fill a store with objects of many kinds; return a log that has a fork."""
    log = log_in(store)
    await write(log, 0, 1, 2, 3)
    await log.store_blob(b"long output")
    await log.record_response(3, completion("later"), origin_by("think"))
    await save_caches(log)
    fork = await make_fork(log, 1, "on")
    service = EventLogService(store)
    await fill_discussion(service, 12)
    await service.append_event(SESSION, "SUMMARY", "moderator", "So far.", event_id="mine")
    await service.prune_events(SESSION, {"type": "byCount", "keep": 5})
    home = "users/somebody/"
    for name in ("agents/a.json", "settings.json", "secrets/KEY/000001.json", "keys/0a"):
        await store.create(f"{home}{name}", name.encode())
    for name in (
        "app/state/x.json",
        "gateway/keys/0a/key.json",
        keys.hidden_key("somebody", fork.conversation_id),
    ):
        await store.create(name, b"{}")
    for name in (
        f"{home}index/a.jsonl",
        f"{home}memory-index/a",
        "gateway/tokens/session/1-a.json",
    ):
        await store.create(name, b"left out")
    return log


async def test_a_copy_has_every_object_that_cannot_be_made_again_in_every_store(
    store: Store,
) -> None:
    source = MemoryStore()
    log = await fill_store(source)
    copied = await copy(source, store)
    expected = {key: body for key, body in source.objects.items() if body != b"left out"}
    assert {key: await store.read(key) for key in await all_keys(store)} == expected
    assert (copied.users, copied.conversations, copied.discussions) == (2, 2, 1)
    assert (copied.objects, copied.later) == (len(expected), 0)
    assert await find_damage(store, log) == []
    again = await copy(source, store)
    assert (again.objects, again.events) == (0, 0)


async def test_a_repeated_copy_takes_what_is_new_and_what_was_replaced() -> None:
    source, target = MemoryStore(), MemoryStore()
    log = await fill_store(source)
    await copy(source, target)
    await write(log, 3, 4, 5)
    await save_caches(log)
    await source.replace("users/somebody/settings.json", b"changed")
    copied = await copy(source, target)
    assert copied.events == 2
    assert copied.objects == 2 + len(["base_state.json", "settings.json"])
    assert {**source.objects, **target.objects} == source.objects
    assert await find_damage(target, log) == []


async def test_an_answer_stored_for_a_later_slot_is_not_restored_to_an_earlier_moment() -> None:
    source, target = MemoryStore(), MemoryStore()
    log = log_in(source)
    await write(log, 0, 1, 2, 30)
    await log.record_response(2, completion("later"), origin_by("think"))
    await copy(source, target, BEGIN + timedelta(seconds=10))
    assert await target.list(f"{log.prefix}responses/") == []
    await copy(source, target)
    assert await target.list(f"{log.prefix}responses/") != []


async def test_a_damaged_object_is_copied_as_it_is_and_found_in_the_copy() -> None:
    source, target = MemoryStore(), MemoryStore()
    log = log_in(source)
    await write(log, 0, 1, 2, 3)
    key = log.prefix + keys.event_key(log.conversation_id, 1)
    source.objects[key] = b"{"
    await copy(source, target)
    [damage] = await find_damage(target, log)
    assert damage.startswith(key)


async def test_a_discussion_is_copied_up_to_the_moment() -> None:
    source, target = MemoryStore(), MemoryStore()
    service = EventLogService(source)
    await fill_discussion(service, 12)
    await asyncio.sleep(0.01)  # its events have milliseconds
    moment = datetime.now(UTC)
    await asyncio.sleep(0.01)
    await fill_discussion(service, 5)
    await service.append_event(SESSION, "SUMMARY", "moderator", "So far.", event_id="mine")
    await service.prune_events(SESSION, {"type": "byCount", "keep": 5})
    copied = await copy(source, target, moment)
    assert (copied.events, copied.discussions, copied.later) == (12, 1, 1)
    verified = await verify_discussion(target, "local", SESSION)
    assert (verified.events, verified.findings) == (12, [])
    restored = EventLogService(target)
    await fill_discussion(restored, 1)
    events = await restored.get_recent_events(SESSION, 20)
    assert [event.sequence for event in events] == list(range(1, 14))
    assert await target.list(f"{FOLDER}archive/") == []


@pytest.mark.parametrize("second", [0, 5])
async def test_a_conversation_that_began_later_is_left_out_with_its_objects(second: int) -> None:
    source, target = MemoryStore(), MemoryStore()
    log = log_in(source)
    await write(log, 0, 6)
    await log.store_blob(b"long output")
    copied = await copy(source, target, BEGIN + timedelta(seconds=second))
    assert (copied.conversations, await all_keys(target)) == (0, [])


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_what_is_restored_to_any_moment_is_whole_and_a_later_copy_completes_it(
    data: st.DataObject,
) -> None:
    asyncio.run(_compare_at_moments(data))


async def _compare_at_moments(data: st.DataObject) -> None:
    source, target = MemoryStore(), MemoryStore()
    log = log_in(source)
    times = sorted(data.draw(st.lists(st.integers(0, 100), min_size=1, max_size=12)))
    for nth, second in enumerate(times):
        await write(log, nth, second)
        if data.draw(st.booleans()):
            await save_caches(log)
    logs, written = [log], {log.conversation_id: [f"at {second}" for second in times]}
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(times) - 1))
        begun = data.draw(st.integers(times[at], 110))
        child = await make_fork(log, at)
        await write(child, at + 1, begun)
        logs.append(child)
        written[child.conversation_id] = [f"at {second}" for second in [*times[: at + 1], begun]]
    for second in sorted(data.draw(st.lists(st.integers(0, 110), min_size=1, max_size=3))):
        await copy(source, target, BEGIN + timedelta(seconds=second))
        for each in logs:
            assert await find_damage(target, each) == []
            restored = EventLog(target, each.user_id, each.conversation_id)
            kept = texts(await restored.read(0, 100))
            earlier = [text for text in written[each.conversation_id] if int(text[3:]) <= second]
            assert kept in ([], earlier)
            assert bool(kept) == await restored.exists()
    await copy(source, target)
    assert target.objects == source.objects


async def test_marks_of_forks_that_are_not_restored_are_left_out() -> None:
    source, target = MemoryStore(), MemoryStore()
    log = log_in(source)
    await write(log, 0, 1, 2, 30)
    await make_fork(log, 2, "on")
    await copy(source, target, BEGIN + timedelta(seconds=10))
    marks = await source.list(f"{log.prefix}forks/")
    assert [json.loads(source.objects[key])["at"] for key in marks] == [2]
    assert await target.list(f"{log.prefix}forks/") == []
    assert await find_damage(target, log) == []
