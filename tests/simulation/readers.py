"""Onlookers: they read while others write, and keep what they saw."""

import asyncio
from collections.abc import Iterable

from events.entry import Entry
from storage.cache import EntryCache
from storage.errors import StoreUnavailable
from storage.reader import LogReader
from storage.state import state_of
from tests.simulation.conversation import USER
from tests.simulation.scheduler import Loop
from tests.simulation.store import Access, Bucket


class Reader:
    """`seen` is what each slot held when it was first looked at."""

    def __init__(self, bucket: Bucket, conversation_id: str, *, cached: bool) -> None:
        self.loop: Loop = bucket.loop
        cache = EntryCache(200_000) if cached else None
        store = Access(bucket, patience=0.0)
        self.log = LogReader(store, USER, conversation_id, cache)
        self.seen: dict[int, bytes] = {}
        self.disagreed: list[str] = []
        self.reads = 0

    async def look_on(self, looks: int) -> None:
        """Read in each of the ways there are, as often as the store answers."""
        ways = (self._range, self._newest, self._folded, self._one)
        for _ in range(looks):
            await asyncio.sleep(self.loop.delay() * 4)
            try:
                self._keep(await self.loop.dice.choice(ways)())
                self.reads += 1
            except StoreUnavailable:
                self.loop.tell("a reader gets no answer")

    async def _range(self) -> list[Entry]:
        return await self.log.read(self.loop.dice.randrange(6), 5)

    async def _newest(self) -> list[Entry]:
        newest = await self.log.newest(4)
        if [entry.seq for entry in newest] != sorted((e.seq for e in newest), reverse=True):
            self.disagreed.append("the newest entries are out of order")
        return newest

    async def _folded(self) -> list[Entry]:
        await state_of(self.log)
        return []

    async def _one(self) -> list[Entry]:
        found = await self.log.find(self.loop.dice.randrange(12))
        return [] if found is None else [found]

    def _keep(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            if self.seen.setdefault(entry.seq, entry.body) != entry.body:
                self.disagreed.append(f"slot {entry.seq} was seen to change")
