"""The events of a log by index, read when they are asked for."""

from collections.abc import AsyncIterator

from perdure.events.event import AnyEvent
from perdure.storage.keys import LAST_SEQ, event_id
from perdure.storage.log.readable import ReadableLog

PAGE_SIZE = 100
"""Events that an iteration reads at once."""


class EventList:
    """The events of a conversation; the index of an event is the slot of its log.

    Nothing is read before it is asked for. Kept are the ids that `get_index` has met, and nothing
    else but what the log's own cache has room for. The methods raise the errors of the store.
    """

    def __init__(self, log: ReadableLog) -> None:
        self._log = log
        self._indices: dict[str, int] = {}
        self._indexed = 0  # slots, from the first one on
        self._length = 0  # when it was last counted

    async def length(self) -> int:
        """Count the events that are there now."""
        self._length = await self._log.end(self._length)
        return self._length

    async def get(self, index: int) -> AnyEvent:
        """Return the event at an index; a negative one counts from the end. Raises IndexError."""
        seq = index if index >= 0 else await self.length() + index
        if 0 <= seq <= LAST_SEQ:
            entry = await self._log.find(seq)
            if entry is not None:
                return entry.event
            if seq < await self.length():  # its object is lost
                return (await self._log.get(seq)).event
        raise IndexError(f"the log has no event {index}")

    async def read(
        self, start: int | None = None, stop: int | None = None, step: int | None = None
    ) -> list[AnyEvent]:
        """Return the events of a slice, as a list has it: `read(-10)` has the newest ten."""
        first = start or 0
        if first >= 0 and stop is not None and stop >= 0 and step in (None, 1):
            return await self._read_range(first, min(stop, LAST_SEQ + 1))
        seqs = range(*slice(start, stop, step).indices(await self.length()))
        if seqs.step == 1:
            return await self._read_range(seqs.start, seqs.stop)
        if seqs.step == -1:
            return (await self._read_range(seqs.stop + 1, seqs.start + 1))[::-1]
        return [(await self._log.get(seq)).event for seq in seqs]

    async def get_index(self, event_id: str) -> int:
        """Return the index of the event with this id. Raises KeyError."""
        if event_id not in self._indices:
            await self._index_new_events()
        return self._indices[event_id]

    async def find(self, event_id: str) -> AnyEvent:
        """Return the event with this id. Raises KeyError."""
        return await self.get(await self.get_index(event_id))

    async def __aiter__(self) -> AsyncIterator[AnyEvent]:
        """Yield the events in the order of the log, a page of them in memory at a time."""
        first = 0
        while page := await self._read_range(first, first + PAGE_SIZE):
            for event in page:
                yield event
            first += len(page)

    async def _read_range(self, first: int, stop: int) -> list[AnyEvent]:
        entries = await self._log.read(first, stop - first) if stop > first else []
        return [entry.event for entry in entries]

    async def _index_new_events(self) -> None:
        """Index the slots that were not there before, by ids that follow from them.

        Those before a fork have the ids of other conversations, and are read.
        """
        own = await self._log.first_own_seq()
        for first in range(self._indexed, own, PAGE_SIZE):
            events = await self._read_range(first, min(own, first + PAGE_SIZE))
            self._indices |= {event.id: seq for seq, event in enumerate(events, first)}
        name, end = self._log.conversation_id, await self.length()
        seqs = range(max(self._indexed, own), end)
        self._indices |= {event_id(name, seq): seq for seq in seqs}
        self._indexed = max(self._indexed, end)
