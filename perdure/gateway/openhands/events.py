"""The events of a log as OpenHands' client reads them, ready as JSON."""

import json
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from perdure.events.control import ConversationErrorEvent, ConversationStateUpdateEvent
from perdure.events.entry import Entry
from perdure.exports.json_text import compact_json
from perdure.exports.openhands import CLASS_PREFIXES, with_valid_id
from perdure.storage.cache import Cache
from perdure.storage.log.event_log import EventLog

CHUNK = 200
"""The number of slots that are converted at once, and kept together."""

MAX_CACHED_BYTES = 64 * 1024 * 1024

OWN_KEYS = ("spec", "openhands")
"""Keys of updates that are not shown: they have the whole agent, and what is kept for clients."""

ERROR_CODES = {
    "max_iterations": "MaxIterationsReached",
    "max_budget": "MaxBudgetReached",
    "auth": "LLMAuthenticationError",
}
"""OpenHands' names of errors that its clients know."""


@dataclass(frozen=True)
class ReadyEvent:
    """An event as JSON, and the fields by which it is searched for."""

    seq: int
    id: str
    timestamp: str
    kind: str
    source: str
    body: str


@dataclass(frozen=True)
class Chunk:
    """The events of some slots up to the one before `end`, and the newest time among them."""

    end: int
    newest: str
    events: tuple[ReadyEvent, ...]

    @property
    def size(self) -> int:
        return sum(len(event.body) for event in self.events) + 100


def native_tools(tool_module_qualnames: Collection[str]) -> frozenset[str]:
    """Return the tools whose own classes the client knows: those whose module it has named."""
    return frozenset(CLASS_PREFIXES.keys() & set(tool_module_qualnames))


def convert_entry(entry: Entry, native: Collection[str], newest: str) -> ReadyEvent | None:
    """Convert an entry; None for one that is not shown.

    Clients sort by time: no event has an earlier time than the `newest` one before it.
    """
    event = entry.event
    if isinstance(event, ConversationStateUpdateEvent) and event.key in OWN_KEYS:
        return None
    fields = with_valid_id(entry, native)
    fields["timestamp"] = timestamp = max(fields["timestamp"], newest)
    if isinstance(event, ConversationStateUpdateEvent):
        fields["source"] = "environment"  # whoever has asked for the change
    if isinstance(event, ConversationErrorEvent):
        fields["code"] = ERROR_CODES.get(event.code, event.code)
    body = compact_json(fields).decode()
    return ReadyEvent(entry.seq, fields["id"], timestamp, fields["kind"], fields["source"], body)


def state_update(key: str, value: Any, timestamp: str) -> str:
    """Return an update of the state that no log has."""
    fields = {"kind": "ConversationStateUpdateEvent", "key": key, "value": value}
    return _passing(fields, "environment", timestamp)


def text_delta(text: str, timestamp: str) -> str:
    """Return words of the model as they come."""
    return _passing({"kind": "StreamingDeltaEvent", "content": text}, "agent", timestamp)


def _passing(fields: dict[str, Any], source: str, timestamp: str) -> str:
    head = {"id": str(uuid4()), "timestamp": timestamp, "source": source}
    return json.dumps(head | fields, ensure_ascii=False)


class ReadyEvents:
    """The converted events of many logs, with those that were asked for last kept."""

    def __init__(self, max_bytes: int = MAX_CACHED_BYTES) -> None:
        self._chunks: Cache[tuple[str, str, frozenset[str], int], Chunk] = Cache(
            max_bytes, lambda chunk: chunk.size
        )

    async def read(
        self, log: EventLog, native: frozenset[str], first: int = 0
    ) -> AsyncIterator[ReadyEvent]:
        """Yield the events from slot `first` on. Raises StoreError."""
        number, chunk = first // CHUNK, None
        while chunk is None or chunk.end == number * CHUNK:
            chunk = await self.read_chunk(log, native, number)
            for event in chunk.events:
                if event.seq >= first:
                    yield event
            number += 1

    async def read_backwards(
        self, log: EventLog, native: frozenset[str], first: int
    ) -> AsyncIterator[ReadyEvent]:
        """Yield the events from slot `first` on towards the beginning. Raises StoreError."""
        for number in range(first // CHUNK, -1, -1):
            for event in reversed((await self.read_chunk(log, native, number)).events):
                if event.seq <= first:
                    yield event

    async def read_chunk(self, log: EventLog, native: frozenset[str], number: int) -> Chunk:
        """Read a chunk, after those before it that are not kept. Raises StoreError."""
        first, before = number, None
        while first > 0 and before is None:
            before = self._chunks.get(_key(log, native, first - 1))
            first -= before is None
        chunk = before or Chunk(0, "", ())
        for each in range(first, number + 1):
            chunk = await self._convert(log, native, each, chunk.newest)
        return chunk

    async def newest_time(self, log: EventLog, native: frozenset[str], end: int) -> str:
        """Return the newest time among the events before slot `end`; empty if there is none."""
        if end == 0:
            return ""
        chunk = await self.read_chunk(log, native, (end - 1) // CHUNK)
        times = [event.timestamp for event in chunk.events if event.seq < end]
        if not times and end > CHUNK:
            return (await self.read_chunk(log, native, (end - 1) // CHUNK - 1)).newest
        return times[-1] if times else ""

    async def _convert(
        self, log: EventLog, native: frozenset[str], number: int, newest: str
    ) -> Chunk:
        key = _key(log, native, number)
        if (kept := self._chunks.get(key)) is not None:
            return kept
        events: list[ReadyEvent] = []
        end = number * CHUNK
        for entry in await log.read(end, CHUNK):
            end += 1
            if (event := convert_entry(entry, native, newest)) is not None:
                events.append(event)
                newest = event.timestamp
        chunk = Chunk(end, newest, tuple(events))
        if end == (number + 1) * CHUNK:
            self._chunks.put(key, chunk)
        return chunk


def _key(
    log: EventLog, native: frozenset[str], number: int
) -> tuple[str, str, frozenset[str], int]:
    return (log.user_id, log.conversation_id, native, number)
