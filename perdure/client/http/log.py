"""The log of a conversation, as a gateway serves it."""

import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, TypeVar

from perdure.api.conversations import Conversation, EventPage
from perdure.client.http.connection import Connection
from perdure.client.http.entries import parse_served_entry
from perdure.client.http.problems import bad_slot
from perdure.client.http.shared_stream import SharedStream
from perdure.errors import NotFound
from perdure.events.base import TIMESTAMP_FORMAT
from perdure.events.entry import Entry
from perdure.storage import keys
from perdure.storage.cache import Cache
from perdure.storage.errors import Altered, BadSlot, Missing, StoreError, StoreUnavailable
from perdure.storage.log.entry_cache import memory_size
from perdure.storage.log.readable import EntryOrError
from perdure.storage.log.trouble import TroubleRecord

T = TypeVar("T")

PAGE_SIZE = 200
"""Entries that are asked for at once."""

CACHE_BYTES = 16 * 1024 * 1024

IDLE_INTERVAL = 0.25
"""Seconds between two questions of a tail whether it may end."""


class HttpLog:
    """The events of a conversation, read over HTTP; those that were read stay in memory."""

    def __init__(
        self, connection: Connection, user_id: str, conversation_id: str, owner: str | None
    ) -> None:
        self.user_id = user_id
        self.conversation_id = conversation_id
        self.prefix = keys.conversation_prefix(user_id, conversation_id)
        self.path = f"/v1/conversations/{conversation_id}"
        self._connection = connection
        self._owner = owner
        self._entries: Cache[int, Entry] = Cache(CACHE_BYTES, memory_size)
        self.following = SharedStream(connection, self.path, owner, self._remember)

    async def exists(self) -> bool:
        return await self.end() > 0

    async def first_own_seq(self) -> int:
        return (await self._show()).first_own_seq

    async def find(self, seq: int) -> Entry | None:
        """Return the entry of slot `seq`, or None if the slot is free. Raises Damaged."""
        if (cached := self._entries.get(seq)) is not None:
            return cached
        following = self.following
        if following.is_live and seq >= following.end:
            return None
        for slot in await self.read_slots(seq, PAGE_SIZE if seq < following.end else 1):
            if isinstance(slot, BadSlot):
                raise slot
            return slot
        return None

    async def get(self, seq: int) -> Entry:
        entry = await self.find(seq)
        if entry is None:
            raise Missing(seq, self.prefix + keys.event_key(self.conversation_id, seq))
        return entry

    async def read(self, first: int, limit: int) -> list[Entry]:
        entries: list[Entry] = []
        for slot in await self.read_slots(first, limit):
            if isinstance(slot, BadSlot):
                raise slot
            entries.append(slot)
        return entries

    async def read_slots(self, first: int, limit: int) -> list[EntryOrError]:
        slots: list[EntryOrError] = []
        while len(slots) < limit:
            seq = first + len(slots)
            if (cached := self._entries.get(seq)) is not None:
                slots.append(cached)
                continue
            page = await self._load(seq, min(PAGE_SIZE, limit - len(slots)))
            if not page:
                break
            slots += page
        return slots

    async def pages(self, end: int | None = None) -> AsyncGenerator[list[EntryOrError], None]:
        for first in itertools.count(0, PAGE_SIZE):
            count = PAGE_SIZE if end is None else min(PAGE_SIZE, end - first)
            page = await self.read_slots(first, count)
            if page:
                yield page
            if len(page) < PAGE_SIZE:
                return

    async def end(self, hint: int = 0) -> int:  # noqa: ARG002 - the store's log needs it
        """Return the number of slots; 0 where the user has no such conversation.

        Raises NotFound for another user's without a grant.
        """
        try:
            page = await self._get("/events", EventPage, after_seq=keys.LAST_SEQ, limit=1)
        except NotFound:
            if self._owner is not None:
                raise
            return 0
        return page.end_seq

    async def tail(
        self, after: int = -1, is_idle: Callable[[], Awaitable[bool]] | None = None
    ) -> AsyncGenerator[Entry, None]:
        """Yield the entries after slot `after`, and then each new one as it comes.

        A gateway that goes and comes back is noticed by a pause alone. Raises Damaged, and
        Unreachable after an outage.
        """
        seq, ending = after + 1, False
        if not self.following.is_live:
            async with aclosing(self._read_on(seq)) as present:
                async for entry in present:
                    yield entry
                    seq += 1
        async with self.following.attach(after):
            while True:
                next_entry = await self._load_one(seq) if ending else await self.find(seq)
                if next_entry is not None:
                    yield next_entry
                    seq += 1
                elif ending:
                    return
                elif self.following.failure is not None:
                    raise self.following.failure
                elif is_idle is not None and await is_idle():
                    ending = True  # an event after our look may have made it idle
                else:
                    await self.following.wait(None if is_idle is None else IDLE_INTERVAL)

    async def read_blob(self, key: str) -> bytes | None:
        keys.check_blob_key(key)
        name = key.rpartition("/")[2]
        try:
            body = await self._get(f"/blobs/{name}", bytes)
        except NotFound:
            return None
        if sha256(body).hexdigest() != name:
            raise Altered(self.prefix + key)
        return body

    async def load_state(self) -> bytes | None:
        try:
            return await self._get("/state", bytes)
        except NotFound:
            return None

    async def load_trouble(self) -> bytes | None:
        status = (await self._show()).status
        at = datetime.now(UTC).strftime(TIMESTAMP_FORMAT)
        record = TroubleRecord(sentence=status.trouble, end=status.next_seq, at=at)
        return record.model_dump_json().encode()

    @asynccontextmanager
    async def follow(self, after: int) -> AsyncGenerator[SharedStream, None]:
        """Follow the conversation while inside; `find` then needs no request for a free slot."""
        async with self.following.attach(after):
            yield self.following

    async def _show(self) -> Conversation:
        return await self._get("", Conversation)

    async def _get(self, path: str, kind: type[T], **query: Any) -> T:
        return await self._connection.get(self.path + path, kind, owner=self._owner, **query)

    async def _read_on(self, first: int) -> AsyncGenerator[Entry, None]:
        """Yield the entries from a slot on that there are now, page by page."""
        while page := await self.read(first, PAGE_SIZE):
            for entry in page:
                yield entry
            first += len(page)
            if len(page) < PAGE_SIZE:
                return

    async def _load_one(self, seq: int) -> Entry | None:
        slots = await self.read_slots(seq, 1)
        for slot in slots:
            if isinstance(slot, BadSlot):
                raise slot
            return slot
        return None

    async def _load(self, first: int, limit: int) -> list[EntryOrError]:
        """Load some slots from `first` on; those that cannot be read come one by one."""
        try:
            page = await self._get("/events", EventPage, after_seq=first - 1, limit=limit)
        except NotFound:
            return []
        except StoreUnavailable:
            raise
        except StoreError as error:
            if limit > 1:
                return await self._load(first, limit // 2)
            return [bad_slot(first, str(error))]
        slots: list[EntryOrError] = []
        for item in page.items:
            fields = dict(item)
            entry = parse_served_entry(fields.pop("seq"), fields)
            self._remember(entry)
            slots.append(entry)
        return slots

    def _remember(self, entry: Entry) -> None:
        self._entries.put(entry.seq, entry)
