"""Objects of a shared log that are lost, altered or broken."""

from pathlib import Path

import pytest

from perdure.storage.discussions.service import EventLogService
from perdure.storage.errors import Altered, Damaged, Missing
from perdure.storage.files import FileStore
from tests.storage.discussions.session import FOLDER, SESSION, fill, sequences
from tests.storage.memory import MemoryStore


async def test_a_lost_or_altered_event_is_named(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await fill(EventLogService(store), 3)
    key = f"{FOLDER}events/000002.json"
    body = await store.read(key) or b""
    await store.replace(key, body.replace(b"number 1", b"number 9"))
    with pytest.raises(Damaged, match="000002"):
        await EventLogService(store).get_recent_events(SESSION, 5)
    await store.delete(key)
    with pytest.raises(Missing, match="000002"):
        await EventLogService(store).get_recent_events(SESSION, 5)


async def test_an_event_that_was_replaced_by_a_whole_one_is_named() -> None:
    store, other = MemoryStore(), MemoryStore()
    await fill(EventLogService(store), 3)
    await fill(EventLogService(other), 2)
    await store.replace(
        f"{FOLDER}events/000002.json", await other.read(f"{FOLDER}events/000002.json") or b""
    )
    with pytest.raises(Altered):
        await EventLogService(store).get_recent_events(SESSION, 5)


async def test_a_state_that_is_lost_or_broken_is_folded_again() -> None:
    store = MemoryStore()
    await fill(EventLogService(store), 60)
    key = f"{FOLDER}state.json"
    assert await store.read(key) is not None
    for body in (b"{", None):
        if body is None:
            await store.delete(key)
        else:
            await store.replace(key, body)
        events = await EventLogService(store).get_recent_events(SESSION, 3)
        assert sequences(events) == [58, 59, 60]
