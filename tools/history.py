"""What a tool said earlier in this conversation: the log is the only memory that a tool has."""

from collections.abc import AsyncGenerator
from typing import TypeVar

from events.entry import Entry
from events.observations import Observed
from events.tools import ObservationEvent
from storage.reader import LogReader

PAGE = 128
"""Slots that are read at once."""

Kind = TypeVar("Kind", bound=Observed)


async def newest_first(log: LogReader, kind: type[Kind], known: int) -> AsyncGenerator[Kind, None]:
    """The observations of this kind, from the end of the log to its beginning.

    `known` is a number of slots that the log has at least. A slot that cannot be read is passed
    over, and so is one that only a newer version can read.
    """
    end = await log.end(hint=known)
    while end > 0:
        first = max(0, end - PAGE)
        for slot in reversed(await log.readable(first, end - first)):
            if isinstance(slot, Entry) and isinstance(slot.event, ObservationEvent):
                seen = slot.event.observation
                if isinstance(seen, kind):
                    yield seen
        end = first
