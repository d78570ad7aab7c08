"""Earlier observations of a tool in the same conversation, read from the log."""

from collections.abc import AsyncGenerator
from typing import TypeVar

from perdure.events.entry import Entry
from perdure.events.observations import ObservationBase
from perdure.events.tools import ObservationEvent
from perdure.storage.log.reader import LogReader

ENTRIES_PER_READ = 128
ObservationT = TypeVar("ObservationT", bound=ObservationBase)


async def read_newest_first(
    log: LogReader, kind: type[ObservationT], min_length: int
) -> AsyncGenerator[ObservationT, None]:
    """Yield the observations of type `kind`, from the end of the log to its beginning.

    The log has at least `min_length` slots. Skips a slot that this version cannot read.
    """
    end = await log.end(hint=min_length)
    while end > 0:
        first = max(0, end - ENTRIES_PER_READ)
        for slot in reversed(await log.read_slots(first, end - first)):
            if isinstance(slot, Entry) and isinstance(slot.event, ObservationEvent):
                observation = slot.event.observation
                if isinstance(observation, kind):
                    yield observation
        end = first
