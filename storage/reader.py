"""Reading one conversation's log."""

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeAlias

from agent.completion import Completion
from events.entry import Entry, entry_from
from events.event import UnknownEvent
from storage.cache import EntryCache
from storage.errors import Altered, Damaged, Missing
from storage.keys import (
    EVENTS,
    STATE,
    check_blob_key,
    conversation_prefix,
    event_id,
    event_key,
    events_after,
    response_key,
)
from storage.lineage import Holder, Lineage, holder_of, lineage_of
from storage.listing import keys
from storage.record import Record
from storage.segments import next_boundary, segment_at
from storage.store import Store

Slot: TypeAlias = Entry | Damaged | Missing
"""What a slot turned out to hold, or why it could not be told; all have a `seq`."""

AT_ONCE = 32
COLD = 100
"""Slots that are worth looking for a segment."""

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 0.5


async def never() -> bool:
    return False


class LogReader:
    """One conversation's events, in order, with what they refer to.

    The first slots of a fork are those of the conversation it forks, with their ids and keys.
    Raises ValueError where an id is none, and the errors of the store.
    """

    def __init__(
        self,
        store: Store,
        user_id: str,
        conversation_id: str,
        cache: EntryCache | None = None,
    ) -> None:
        self.store = store
        self.user_id = user_id
        self.conversation_id = conversation_id
        self._prefix = conversation_prefix(user_id, conversation_id)
        self.cache = cache
        self._line: Lineage | None = None

    async def lineage(self) -> Lineage:
        """This conversation, and those whose slots come before its own. Raises Altered."""
        if self._line is None:
            known = self.cache and self.cache.lineage(self.user_id, self.conversation_id)
            read = known or await lineage_of(self.store, self.user_id, self.conversation_id)
            self._line = read
        return self._line

    async def find(self, seq: int) -> Entry | None:
        """The entry of slot `seq`, or nothing where the slot is free. Raises Damaged."""
        if (known := await self._cached(seq)) is not None:
            return known
        holder = holder_of(await self.lineage(), seq)
        body = await self.store.read(holder.key(seq))
        return None if body is None else self._remember(holder, parsed(holder, seq, body))

    async def at(self, seq: int) -> Entry:
        """The entry of slot `seq`, which must be there. Raises Missing and Damaged."""
        found = await self.find(seq)
        if found is None:
            raise Missing(seq, holder_of(await self.lineage(), seq).key(seq))
        return found

    async def read(self, first: int, limit: int) -> list[Entry]:
        """The entries from slot `first` on, at most `limit`, fewer only at the end of the log.

        Where a segment holds many of them that are not known yet, it is read in their stead. Raises
        Missing or Damaged for the first slot that cannot be read.
        """
        entries: list[Entry] = []
        while len(entries) < limit:
            at, wanted = first + len(entries), limit - len(entries)
            if segment := await self._cold(at, wanted):
                entries += segment
                continue
            wanted = min(wanted, next_boundary(at) - at)
            found = await self.readable(at, wanted)
            entries += map(_whole, found)
            if len(found) < wanted:
                break
        return entries

    async def readable(self, first: int, limit: int) -> list[Slot]:
        """As `read`, with the error in place of each entry that is missing or damaged."""
        await self.lineage()  # before many ask at once
        slots: list[Slot] = []
        while len(slots) < limit:
            wanted = min(AT_ONCE, limit - len(slots))
            found = await self._range(first + len(slots), wanted)
            slots.extend(found)
            if len(found) < wanted:
                break
        return slots

    async def newest(self, limit: int) -> list[Entry]:
        """The last entries, at most `limit`, newest first. Raises Missing and Damaged."""
        first = max(0, await self.end() - limit)
        return list(reversed(await self.read(first, limit)))

    async def end(self, hint: int = 0) -> int:
        """The number of slots, also where an object in the middle is missing.

        `hint` is the number of slots that the caller knows of: where the last of them exists, only
        what comes after it is listed.
        """
        first = (await self.lineage())[0].first
        seqs = await self._listed(max(0, hint - 1)) or (await self._listed(0) if hint > 1 else [])
        return max([first - 1, *seqs]) + 1

    async def gap(self) -> int | None:
        """The first of its own slots that has no object, though a later one has."""
        first = (await self.lineage())[0].first
        listed = set(await self._listed(0))
        unlisted = (seq for seq in range(first, max(listed, default=first)) if seq not in listed)
        # A listing beside a writer may pass over a slot: it is there by now, or it is gone.
        for seq in unlisted:
            if await self.store.read((await self.lineage())[0].key(seq)) is None:
                return seq
        return None

    async def tail(
        self, after: int = -1, idle: Callable[[], Awaitable[bool]] = never
    ) -> AsyncGenerator[Entry, None]:
        """The entries after slot `after`, and then each new one as it comes.

        `idle` is asked whenever there is nothing more to read; once it says true, the tail ends
        after what was written until then. Raises Damaged; a tail after its seq goes on behind it.
        """
        seq, pause, ending = after + 1, FIRST_PAUSE, False
        while True:
            found = await self.find(seq)
            if found is not None:
                yield found
                seq, pause = seq + 1, FIRST_PAUSE
            elif ending:
                return
            elif await idle():
                ending = True  # it may have become idle by an event that came after our look
            else:
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    async def recorded(self, seq: int) -> Completion | None:
        """The completion recorded for the step that begins at slot `seq`. Raises Damaged."""
        found = await self._record(seq)
        return None if found is None else found.completion

    async def kept(self, key: str) -> bytes | None:
        """What `keep` stored under `key`. Raises ValueError for another key, and Altered."""
        check_blob_key(key)
        for holder in await self.lineage():
            body = await self.store.read(holder.prefix + key)
            if body is not None and hashlib.sha256(body).hexdigest() != key.rpartition("/")[2]:
                raise Altered(holder.prefix + key)
            if body is not None:
                return body
        return None

    async def load_state(self) -> bytes | None:
        """What `save_state` stored last, if it was not lost: the events are the truth."""
        return await self.store.read(self._prefix + STATE)

    async def _range(self, first: int, count: int) -> list[Slot]:
        """The slots that exist of `count` from `first` on."""
        slots = await asyncio.gather(*(self._look(seq) for seq in range(first, first + count)))
        if not any(isinstance(slot, Missing) for slot in slots):
            return slots
        end = await self.end(hint=first)
        # Slots fill in order: one that was free before a later one was taken is taken by now.
        return [
            await self._look(slot.seq) if isinstance(slot, Missing) else slot
            for slot in slots
            if slot.seq < end
        ]

    async def _cold(self, first: int, limit: int) -> list[Entry]:
        """What a segment holds of a long range whose beginning is not known yet."""
        if limit < COLD or await self._cached(first) is not None:
            return []
        holder = holder_of(await self.lineage(), first)
        segment = await segment_at(self.store, holder, first)
        if segment is None:
            return []
        found = enumerate(segment.bodies[first - segment.first :][:limit], first)
        upto = min((one.first for one in await self.lineage() if one.first > first), default=None)
        return [
            self._remember(holder, parsed(holder, seq, body))
            for seq, body in found
            if upto is None or seq < upto
        ]

    async def _listed(self, first: int) -> list[int]:
        """The slots from `first` on that have an object."""
        found = keys(self.store, self._prefix + EVENTS, self._prefix + events_after(first))
        return [seq async for key in found if (seq := self._seq(key)) is not None]

    async def _look(self, seq: int) -> Slot:
        try:
            return await self.at(seq)
        except (Damaged, Missing) as error:
            return error

    async def _record(self, seq: int) -> Record | None:
        key = holder_of(await self.lineage(), seq).prefix + response_key(seq)
        body = await self.store.read(key)
        try:
            return None if body is None else Record.model_validate(json.loads(body))
        except (ValueError, RecursionError) as error:
            raise Damaged(seq, key) from error

    async def _cached(self, seq: int) -> Entry | None:
        """The entry of slot `seq` where it is known without asking the store for it."""
        holder = holder_of(await self.lineage(), seq)
        slot = (holder.user_id, holder.conversation_id, seq)
        return None if self.cache is None else self.cache.get(slot)

    def _remember(self, holder: Holder, entry: Entry) -> Entry:
        if self.cache is not None:
            self.cache.put((holder.user_id, holder.conversation_id, entry.seq), entry)
            if self._line is not None:
                self.cache.put_lineage(self._line)
        return entry

    def _seq(self, key: str) -> int | None:
        """The slot whose key this is; none for an object that a log did not write."""
        digits = key.rpartition("/")[2][:6]
        if not digits.isdecimal():
            return None
        seq = int(digits)
        return seq if key == self._prefix + event_key(self.conversation_id, seq) else None


def _whole(slot: Slot) -> Entry:
    if not isinstance(slot, Entry):
        raise slot
    return slot


def parsed(holder: Holder, seq: int, body: bytes) -> Entry:
    """The entry whose object in slot `seq` has this body. Raises Damaged."""
    try:
        found = entry_from(seq, body)
    except ValueError as error:
        raise Damaged(seq, holder.key(seq)) from error
    foreign = isinstance(found.event, UnknownEvent)
    if not foreign and found.event.id != event_id(holder.conversation_id, seq):
        raise Damaged(seq, holder.key(seq))  # an event of another slot
    return found
