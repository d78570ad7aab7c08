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
    STATE,
    check_blob_key,
    conversation_prefix,
    event_id,
    event_key,
    events_after,
    response_key,
)
from storage.record import Record
from storage.store import Store

Slot: TypeAlias = Entry | Damaged | Missing
"""What a slot turned out to hold, or why it could not be told; all have a `seq`."""

AT_ONCE = 32
PAGE = 1000
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 0.5


async def never() -> bool:
    return False


class LogReader:
    """One conversation's events, in order, with what they refer to.

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
        self._cache = cache

    async def find(self, seq: int) -> Entry | None:
        """The entry of slot `seq`, or nothing where the slot is free. Raises Damaged."""
        known = self._cache and self._cache.get(self._slot(seq))
        if known:
            return known
        key = self._event_key(seq)
        body = await self.store.read(key)
        return None if body is None else self._remember(self._parsed(seq, key, body))

    async def at(self, seq: int) -> Entry:
        """The entry of slot `seq`, which must be there. Raises Missing and Damaged."""
        found = await self.find(seq)
        if found is None:
            raise Missing(seq, self._event_key(seq))
        return found

    async def read(self, first: int, limit: int) -> list[Entry]:
        """The entries from slot `first` on, at most `limit`, fewer only at the end of the log.

        Raises Missing or Damaged for the first slot that cannot be read.
        """
        entries = []
        for slot in await self.readable(first, limit):
            if not isinstance(slot, Entry):
                raise slot
            entries.append(slot)
        return entries

    async def readable(self, first: int, limit: int) -> list[Slot]:
        """As `read`, with the error in place of each entry that is missing or damaged."""
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
        seqs = await self._listed(max(0, hint - 1)) or (await self._listed(0) if hint > 1 else [])
        return max(seqs, default=-1) + 1

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
        body = await self.store.read(self._prefix + key)
        if body is not None and hashlib.sha256(body).hexdigest() != key.rpartition("/")[2]:
            raise Altered(self._prefix + key)
        return body

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

    async def _listed(self, first: int) -> list[int]:
        """The slots from `first` on that have an object."""
        keys: list[str] = []
        after = self._prefix + events_after(first)
        while page := await self.store.list(f"{self._prefix}events/", after, PAGE):
            keys.extend(page)
            if len(page) < PAGE:
                break
            after = page[-1]
        return [seq for key in keys if (seq := self._seq(key)) is not None]

    async def _look(self, seq: int) -> Slot:
        try:
            return await self.at(seq)
        except (Damaged, Missing) as error:
            return error

    async def _record(self, seq: int) -> Record | None:
        key = self._prefix + response_key(seq)
        body = await self.store.read(key)
        try:
            return None if body is None else Record.model_validate(json.loads(body))
        except ValueError as error:
            raise Damaged(seq, key) from error

    def _parsed(self, seq: int, key: str, body: bytes) -> Entry:
        try:
            found = entry_from(seq, body)
        except ValueError as error:
            raise Damaged(seq, key) from error
        foreign = isinstance(found.event, UnknownEvent)
        if not foreign and found.event.id != event_id(self.conversation_id, seq):
            raise Damaged(seq, key)  # an event of another slot
        return found

    def _remember(self, entry: Entry) -> Entry:
        if self._cache is not None:
            self._cache.put(self._slot(entry.seq), entry)
        return entry

    def _slot(self, seq: int) -> tuple[str, str, int]:
        return self.user_id, self.conversation_id, seq

    def _event_key(self, seq: int) -> str:
        return self._prefix + event_key(self.conversation_id, seq)

    def _seq(self, key: str) -> int | None:
        """The slot whose key this is; none for an object that a log did not write."""
        digits = key.rpartition("/")[2][:6]
        if not digits.isdecimal() or key != self._event_key(int(digits)):
            return None
        return int(digits)
