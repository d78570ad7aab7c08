"""A session of 5,000 events, pruned, and read back from the archive."""

import pytest

from perdure.storage.discussions.service import EventLogService
from perdure.storage.store import Store

EVENTS = 5000


@pytest.mark.longest
@pytest.mark.timeout(600)
async def test_5000_events_are_pruned_and_read_back(store: Store) -> None:
    service = EventLogService(store)
    for n in range(1, EVENTS + 1):
        type_, speaker = ("SUMMARY", "moderator") if n % 500 == 0 else ("INTENT", "agent-1")
        await service.append_event("long", type_, speaker, f"event {n}")  # type: ignore[arg-type]

    cold = EventLogService(store)
    summaries = await cold.get_events_by_type("long", "SUMMARY", 100)
    assert [event.sequence for event in summaries] == list(range(500, EVENTS + 1, 500))
    visible = {event.sequence for event in summaries}
    after = 0
    while page := await cold.get_events_after_sequence("long", after, 100):
        visible |= {event.sequence for event in page}
        after = page[-1].sequence
    assert len(visible) <= 500

    archived, after = [], 0
    while page := await cold.get_archived_events("long", after, 100):
        archived += page
        after = page[-1].sequence
    assert not visible & {event.sequence for event in archived}
    assert len(visible) + len(archived) == EVENTS
    assert all(event.text == f"event {event.sequence}" for event in archived)
