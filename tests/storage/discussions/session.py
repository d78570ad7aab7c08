"""A session of a shared log, and events in it."""

from typing import Any

from perdure.events.discussion import DiscussionEvent
from perdure.storage.discussions.service import EventLogService

SESSION = "session-123"
FOLDER = f"users/local/discussions/{SESSION}/"


def sequences(events: list[DiscussionEvent]) -> list[int]:
    return [event.sequence for event in events]


async def fill(service: EventLogService, number: int, **more: Any) -> None:
    for n in range(number):
        await service.append_event(SESSION, "INTENT", "agent-1", f"number {n}", **more)
