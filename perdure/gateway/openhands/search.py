"""Searching the events of a conversation, page by page."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from perdure.events.base import TIMESTAMP_FORMAT, Tolerant
from perdure.gateway.openhands.events import ReadyEvent, ReadyEvents
from perdure.storage.cache import Cache
from perdure.storage.keys import event_id
from perdure.storage.log.event_log import EventLog

MAX_PAGE_IDS = 20_000


def to_timestamp(moment: datetime) -> str:
    """Return a moment as events state theirs; one without an offset is in UTC."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return moment.strftime(TIMESTAMP_FORMAT)


def _last_part(kind: str) -> str:
    return kind.rpartition(".")[2]


class EventFilter(Tolerant):
    """The conditions of a search, as its query states them; None sets no condition."""

    kind: Annotated[str, AfterValidator(_last_part)] | None = None
    source: str | None = None
    body: str | None = None
    """A part of the text of messages, whatever its case."""
    timestamp__gte: datetime | None = None
    timestamp__lt: datetime | None = None

    def matches(self, event: ReadyEvent) -> bool:
        since, until = self.timestamp__gte, self.timestamp__lt
        return (
            self.kind in (None, event.kind)
            and self.source in (None, event.source)
            and (since is None or event.timestamp >= to_timestamp(since))
            and (until is None or event.timestamp < to_timestamp(until))
            and (self.body is None or self._is_in_message(event, self.body))
        )

    def _is_in_message(self, event: ReadyEvent, words: str) -> bool:
        if event.kind != "MessageEvent":
            return False
        parts = json.loads(event.body)["llm_message"]["content"]
        return words.lower() in "\n".join(part.get("text", "") for part in parts).lower()


class EventSearch(EventFilter):
    """The query of `GET …/events/search`; `page_id` is the id of the first event of a page."""

    page_id: str | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 100
    sort_order: Literal["TIMESTAMP", "TIMESTAMP_DESC"] = "TIMESTAMP"


@dataclass
class EventPages:
    """Pages of events; it remembers where those begin whose ids it has told."""

    events: ReadyEvents

    def __post_init__(self) -> None:
        self._seqs: Cache[tuple[str, str, str], int] = Cache(MAX_PAGE_IDS)

    async def read_page(self, log: EventLog, native: frozenset[str], wanted: EventSearch) -> bytes:
        """Read a page, as JSON. Raises StoreError."""
        bodies: list[str] = []
        following: ReadyEvent | None = None
        async for event in self._select(log, native, wanted):
            if len(bodies) == wanted.limit:
                following = event
                break
            bodies.append(event.body)
        if following is not None:
            self._seqs.put((log.user_id, log.conversation_id, following.id), following.seq)
        next_id = json.dumps(following.id if following is not None else None)
        return f'{{"items":[{",".join(bodies)}],"next_page_id":{next_id}}}'.encode()

    async def count(self, log: EventLog, native: frozenset[str], wanted: EventFilter) -> int:
        """Count the events that match. Raises StoreError."""
        return sum([wanted.matches(event) async for event in self.events.read(log, native)])

    async def find(self, log: EventLog, native: frozenset[str], name: str) -> ReadyEvent | None:
        """Find an event by its id; None if there is none. Raises StoreError."""
        seq = await self.find_seq(log, native, name)
        if seq is None:
            return None
        async for event in self.events.read(log, native, seq):
            return event if event.id == name else None
        return None

    async def find_seq(self, log: EventLog, native: frozenset[str], name: str) -> int | None:
        """Find the slot of an event by its id; None if there is none. Raises StoreError."""
        key = (log.user_id, log.conversation_id, name)
        if (known := self._seqs.get(key)) is not None:
            return known
        # An id follows from its slot: all of 10,000 take 15 ms, and none is read for it.
        for seq in range(await log.first_own_seq(), await log.end()):
            if event_id(log.conversation_id, seq) == name:
                self._seqs.put(key, seq)
                return seq
        async for event in self.events.read(log, native):
            if event.id == name:
                return event.seq
        return None

    async def _select(
        self, log: EventLog, native: frozenset[str], wanted: EventSearch
    ) -> AsyncIterator[ReadyEvent]:
        """Yield the events that match, from the first one of the page on."""
        seq = await self.find_seq(log, native, wanted.page_id) if wanted.page_id else None
        if wanted.sort_order == "TIMESTAMP":
            reading = self.events.read(log, native, seq or 0)
        else:
            last = await log.end() - 1 if seq is None else seq
            reading = self.events.read_backwards(log, native, max(last, 0))
        async for event in reading:
            if wanted.matches(event):
                yield event
