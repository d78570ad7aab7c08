"""Reading one conversation's log."""

import asyncio
import hashlib
import itertools
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from time import monotonic

from perdure.agent.calls.completion import Completion
from perdure.events.base import Frozen
from perdure.events.entry import Entry, Origin
from perdure.storage import keys
from perdure.storage.conversations import conversation_exists
from perdure.storage.errors import Altered, BadSlot, Damaged, Missing, StoreUnavailable
from perdure.storage.log.entry_cache import EntryCache
from perdure.storage.log.lineage import Holder, Lineage, find_holder, parse_slot, read_lineage
from perdure.storage.log.listing import list_seqs
from perdure.storage.log.readable import EntryOrError
from perdure.storage.log.segments import SEGMENT_SIZE, next_boundary, read_copies
from perdure.storage.parallel import map_parallel
from perdure.storage.store import Store


class ResponseRecord(Frozen):
    """A model's completion and the step that asked for it."""

    origin: Origin
    completion: Completion

    def body(self) -> bytes:
        return json.dumps(self.model_dump(mode="json", exclude_none=True)).encode()


FIRST_READS = 4
"""Slots that are read at once as long as it is not known whether they are taken."""

FIRST_POLL_INTERVAL = 0.05
MAX_POLL_INTERVAL = 0.5

OUTAGE_PATIENCE = 60.0
"""Seconds without an answer of the store after which a tail ends with its error."""


@dataclass(eq=False)
class LogReader:
    """The events of a conversation, in order, with the objects they refer to.

    The first slots of a fork are those of the conversation it forks, with their ids and keys.
    Raises ValueError for an invalid id, and the errors of the store.
    """

    store: Store
    user_id: str
    conversation_id: str
    cache: EntryCache | None = None

    def __post_init__(self) -> None:
        self.prefix = keys.conversation_prefix(self.user_id, self.conversation_id)
        self._lineage: Lineage | None = None

    async def lineage(self) -> Lineage:
        """Return this conversation and those whose slots come before its own. Raises Altered."""
        if self._lineage is None:
            ids = (self.user_id, self.conversation_id)
            cached = self.cache and self.cache.lineages.get(ids)
            self._lineage = cached or await read_lineage(self.store, *ids)
        return self._lineage

    async def exists(self) -> bool:
        """Check whether anything is recorded of it, if only the fork it begins with."""
        return await conversation_exists(self.store, self.user_id, self.conversation_id)

    async def first_own_seq(self) -> int:
        """Return the first slot that is not that of a conversation which this one forks."""
        return (await self.lineage())[0].first

    async def find(self, seq: int) -> Entry | None:
        """Return the entry of slot `seq`, or None if the slot is free. Raises Damaged."""
        if (cached := await self._cached(seq)) is not None:
            return cached
        holder = find_holder(await self.lineage(), seq)
        try:
            entry = await self._read_entry(holder, seq)
        except Damaged:  # or altered on its way: S3's own checksums are not checked
            entry = await self._read_entry(holder, seq)
        return entry and self._remember(holder, entry)

    async def _read_entry(self, holder: Holder, seq: int) -> Entry | None:
        body = await self.store.read(holder.key(seq))
        return None if body is None else parse_slot(holder, seq, body)

    async def get(self, seq: int) -> Entry:
        """Return the entry of slot `seq`, which must exist. Raises Missing and Damaged."""
        entry = await self.find(seq)
        if entry is None:
            raise Missing(seq, find_holder(await self.lineage(), seq).key(seq))
        return entry

    async def read(self, first: int, limit: int) -> list[Entry]:
        """Return the entries from slot `first` on, at most `limit`, fewer only at the log's end.

        A segment is read in place of many entries that are not cached. Raises Missing or Damaged
        for the first slot that cannot be read.
        """
        entries = await self.read_cached(first, limit)
        while len(entries) < limit:
            seq, count = first + len(entries), limit - len(entries)
            if copies := await self._read_segments(seq, count):
                entries += copies
                continue
            count = min(count, next_boundary(seq) - seq)
            slots = await self.read_slots(seq, count)
            for slot in slots:
                if isinstance(slot, BadSlot):
                    raise slot
                entries.append(slot)
            if len(slots) < count:
                break
        return entries

    async def read_cached(self, first: int, limit: int) -> list[Entry]:
        """Return the entries of the first slots of the range, as far as all are cached."""
        entries: list[Entry] = []
        while (
            len(entries) < limit and (entry := await self._cached(first + len(entries))) is not None
        ):
            entries.append(entry)
        return entries

    async def read_slots(self, first: int, limit: int) -> list[EntryOrError]:
        """Read like `read`, with the error in place of each entry that is missing or damaged."""
        await self.lineage()  # before parallel reads each load it
        slots: list[EntryOrError] = []
        seqs = range(first, first + limit)
        async with aclosing(map_parallel(self._read_slot, seqs, FIRST_READS)) as reading:
            async for slot in reading:
                if isinstance(slot, Missing):
                    return slots + await self._read_known(slot.seq, limit - len(slots))
                slots.append(slot)
        return slots

    async def pages(self, end: int | None = None) -> AsyncGenerator[list[EntryOrError], None]:
        """Yield the log as `read_slots` returns it, in pages of SEGMENT_SIZE slots.

        Without the `end`, some slots behind it are looked for in vain.
        """
        page: list[EntryOrError] = []
        for first in itertools.count(0, SEGMENT_SIZE):
            count = SEGMENT_SIZE if end is None else min(SEGMENT_SIZE, end - first)
            try:
                page = [*await self.read(first, count)]
            except BadSlot:
                page = await self.read_slots(first, count)
            if page:
                yield page
            if len(page) < SEGMENT_SIZE:
                return

    async def read_newest(self, limit: int) -> list[Entry]:
        """Return the last entries, at most `limit`, newest first. Raises Missing and Damaged."""
        first = max(0, await self.end() - limit)
        return (await self.read(first, limit))[::-1]

    async def end(self, hint: int = 0) -> int:
        """Return the number of slots, also where an object in the middle is missing.

        `hint` is the number of slots that the caller knows of: if the last of them exists, only
        later ones are listed.
        """
        holder = (await self.lineage())[0]
        seqs = await list_seqs(self.store, holder, hint - 1) if hint > 1 else []
        seqs = seqs or await list_seqs(self.store, holder, holder.first)
        return max([holder.first - 1, *seqs]) + 1

    async def end_and_gap(self, known_end: int = 0) -> tuple[int, int | None]:
        """Return the number of slots, and the first own one that has no object before the end.

        `known_end` is the number of slots that the caller knows of; a wrong one costs time only.
        """
        holder = (await self.lineage())[0]
        listed = set(await list_seqs(self.store, holder, holder.first, known_end))
        end = max(holder.first - 1, *listed, -1) + 1
        for seq in range(holder.first, end):
            # A listing may miss a slot that is being written: it exists by now, or it is lost.
            if seq not in listed and await self.store.read(holder.key(seq)) is None:
                return end, seq
        return end, None

    async def tail(
        self,
        after: int = -1,
        is_idle: Callable[[], Awaitable[bool]] | None = None,
        patience: float = OUTAGE_PATIENCE,
    ) -> AsyncGenerator[Entry, None]:
        """Yield the entries after slot `after`, and then each new one as it comes.

        `is_idle` is called whenever there is nothing more to read; once it returns true, the tail
        ends after what was written until then. Raises Damaged; a tail after its seq continues
        behind it. Raises StoreUnavailable after an outage of `patience` seconds.
        """
        seq, pause, ending, answered = after + 1, FIRST_POLL_INTERVAL, False, monotonic()
        while True:
            try:
                entry = await self.find(seq)
            except StoreUnavailable:
                if monotonic() - answered > patience:
                    raise
                await asyncio.sleep(MAX_POLL_INTERVAL)
                continue
            answered = monotonic()
            if entry is not None:
                yield entry
                seq, pause = seq + 1, FIRST_POLL_INTERVAL
            elif ending:
                return
            elif is_idle and await is_idle():
                ending = True  # an event after our read may have made it idle
            else:
                await asyncio.sleep(pause)
                pause = min(pause * 2, MAX_POLL_INTERVAL)

    async def read_response(self, seq: int) -> Completion | None:
        """Return the completion recorded for the step that begins at slot `seq`. Raises Damaged."""
        record = await self._read_record(seq)
        return None if record is None else record.completion

    async def read_blob(self, key: str) -> bytes | None:
        """Return the blob under `key`. Raises ValueError if no blob has such a key, and Altered."""
        keys.check_blob_key(key)
        for holder in await self.lineage():
            body = await self.store.read(holder.prefix + key)
            if body is not None:
                if hashlib.sha256(body).hexdigest() != key.rpartition("/")[2]:
                    raise Altered(holder.prefix + key)
                return body
        return None

    async def load_state(self) -> bytes | None:
        """Return the body last saved as the cached state, if it still exists."""
        return await self.store.read(self.prefix + keys.STATE)

    async def load_trouble(self) -> bytes | None:
        """Return the body last saved of what keeps the conversation from going on."""
        return await self.store.read(self.prefix + keys.TROUBLE)

    async def _read_known(self, first: int, limit: int) -> list[EntryOrError]:
        """Read slots up to the end that the store lists.

        Slots fill in order: one that was free before a later one was taken is taken by now.
        """
        seqs = range(first, min(first + limit, await self.end(hint=first)))
        async with aclosing(map_parallel(self._read_slot, seqs)) as reading:
            return [slot async for slot in reading]

    async def _read_segments(self, first: int, limit: int) -> list[Entry]:
        """Read a long range from segments that follow one another, as far as they reach.

        Returns nothing if the first slot is cached.
        """
        if await self._cached(first) is not None:
            return []
        entries: list[Entry] = []
        holder = find_holder(await self.lineage(), first)
        copies = read_copies(self.store, await self.lineage(), first, limit)
        async with aclosing(copies) as reading:
            async for bodies in reading:
                for seq, body in enumerate(bodies, first + len(entries)):
                    entries.append(self._remember(holder, parse_slot(holder, seq, body)))
        return entries

    async def _read_slot(self, seq: int) -> EntryOrError:
        try:
            return await self.get(seq)
        except BadSlot as error:
            return error

    async def _read_record(self, seq: int) -> ResponseRecord | None:
        key = find_holder(await self.lineage(), seq).prefix + keys.response_key(seq)
        body = await self.store.read(key)
        try:
            return None if body is None else ResponseRecord.model_validate(json.loads(body))
        except (ValueError, RecursionError) as error:
            raise Damaged(seq, key) from error

    async def _cached(self, seq: int) -> Entry | None:
        if self.cache is None:
            return None
        lineage = self._lineage or await self.lineage()
        return self.cache.get(find_holder(lineage, seq).slot(seq))

    def remember(self, lineage: Lineage, entries: Iterable[Entry]) -> None:
        """Put into the cache what another reader has read from the store, and it has not yet."""
        self._lineage = lineage
        for entry in entries:
            holder = find_holder(lineage, entry.seq)
            if self.cache is not None and self.cache.get(holder.slot(entry.seq)) is None:
                self._remember(holder, entry)

    def _remember(self, holder: Holder, entry: Entry) -> Entry:
        if self.cache is not None:
            self.cache.put(holder.slot(entry.seq), entry)
            if self._lineage is not None:
                self.cache.lineages.put((self.user_id, self.conversation_id), self._lineage)
        return entry
