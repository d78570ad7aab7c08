"""Writers over a network that delays and loses: every event once, no gap, whatever the schedule."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.agent.discussion.pruning import ByCount
from perdure.errors import Forbidden
from perdure.events.discussion import DiscussionEvent
from perdure.storage.discussions.service import EventLogService
from perdure.storage.errors import StoreUnavailable
from tests.storage.faulty import FaultyStore, choices_from
from tests.storage.memory import MemoryStore

SESSION = "session"
EVENTS_EACH = 4


async def insist(service: EventLogService, speaker: str, event_id: str) -> DiscussionEvent:
    """Append an event; repeat it until the store answers, as an activity does."""
    while True:
        try:
            return await service.append_event(
                SESSION, "INTENT", speaker, event_id, event_id=event_id
            )
        except StoreUnavailable:
            await asyncio.sleep(0)


async def write(service: EventLogService, speaker: str) -> list[int]:
    names = [f"{speaker}-{n}" for n in range(EVENTS_EACH)]
    return [(await insist(service, speaker, name)).sequence for name in names]


@pytest.mark.long
@settings(max_examples=150)
@given(st.lists(st.binary(max_size=200), min_size=3, max_size=3))
async def test_writers_that_repeat_lose_and_double_nothing(fates: list[bytes]) -> None:
    store = MemoryStore()
    services = [EventLogService(FaultyStore(store, choices_from(fate))) for fate in fates]
    written = await asyncio.gather(
        *(write(service, f"agent-{nth}") for nth, service in enumerate(services))
    )
    events = await EventLogService(store).get_recent_events(SESSION, 100)
    assert [event.sequence for event in events] == list(range(1, 3 * EVENTS_EACH + 1))
    for nth, sequences in enumerate(written):
        mine = [event for event in events if event.speaker == f"agent-{nth}"]
        assert [event.event_id for event in mine] == [
            f"agent-{nth}-{n}" for n in range(EVENTS_EACH)
        ]
        assert [event.sequence for event in mine] == sequences


@given(st.lists(st.binary(max_size=100), min_size=2, max_size=2))
async def test_one_grant_is_one_speech_whatever_is_lost(fates: list[bytes]) -> None:
    store = MemoryStore()
    await EventLogService(store).grant_speech(SESSION, "agent-1")

    async def speak(fate: bytes) -> bool:
        service = EventLogService(FaultyStore(store, choices_from(fate)))
        while True:
            try:
                await service.append_event(SESSION, "SPEECH", "agent-1", "mine")
                return True
            except Forbidden:
                return False
            except StoreUnavailable:  # it may have been written
                await asyncio.sleep(0)

    await asyncio.gather(*map(speak, fates))
    events = await EventLogService(store).get_recent_events(SESSION, 100)
    assert [event.type for event in events] == ["SYSTEM", "SPEECH"]


@given(st.lists(st.binary(max_size=100), min_size=2, max_size=2), st.lists(st.integers(0, 9)))
async def test_prunings_at_once_add_up(fates: list[bytes], keeps: list[int]) -> None:
    store = MemoryStore()
    service = EventLogService(store)
    for n in range(10):
        await service.append_event(SESSION, "INTENT", "agent-1", f"{n}")

    async def prune(fate: bytes) -> None:
        pruner = EventLogService(FaultyStore(store, choices_from(fate)))
        for keep in keeps:
            while True:
                try:
                    await pruner.prune_events(SESSION, ByCount(keep=keep))
                    break
                except StoreUnavailable:
                    await asyncio.sleep(0)

    await asyncio.gather(*map(prune, fates))
    reader = EventLogService(store)
    visible = [event.sequence for event in await reader.get_recent_events(SESSION, 100)]
    archived = [event.sequence for event in await reader.get_archived_events(SESSION, 0, 100)]
    assert visible == list(range(11 - min([*keeps, 10]), 11))
    assert archived + visible == list(range(1, 11))
