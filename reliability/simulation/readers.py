"""Readers that read while others write, and record what they read."""

import asyncio
from collections.abc import Iterable

from perdure.events.entry import Entry
from perdure.storage.errors import StoreUnavailable
from perdure.storage.log.entry_cache import EntryCache
from perdure.storage.log.reader import LogReader
from perdure.storage.log.state import read_state
from reliability.simulation.bucket import Bucket
from reliability.simulation.conversation import USER
from reliability.simulation.scheduler import SimulatedLoop
from reliability.simulation.store import Access


class Reader:
    """`seen` is what each slot held when it was first looked at."""

    def __init__(self, bucket: Bucket, conversation_id: str, *, cached: bool) -> None:
        self.loop: SimulatedLoop = bucket.loop
        cache = EntryCache(200_000) if cached else None
        store = Access(bucket, patience=0.0)
        self.log = LogReader(store, USER, conversation_id, cache)
        self.seen: dict[int, bytes] = {}
        self.disagreed: list[str] = []
        self.reads = 0

    async def read_repeatedly(self, looks: int) -> None:
        """Read in each of the ways there are, as often as the store answers."""
        ways = (self._range, self._newest, self._folded, self._one)
        for _ in range(looks):
            await asyncio.sleep(self.loop.delay() * 4)
            try:
                self._keep(await self.loop.random.choice(ways)())
                self.reads += 1
            except StoreUnavailable:
                self.loop.record("a reader gets no answer")

    async def _range(self) -> list[Entry]:
        return await self.log.read(self.loop.random.randrange(6), 5)

    async def _newest(self) -> list[Entry]:
        newest = await self.log.read_newest(4)
        if [entry.seq for entry in newest] != sorted((e.seq for e in newest), reverse=True):
            self.disagreed.append("the newest entries are out of order")
        return newest

    async def _folded(self) -> list[Entry]:
        await read_state(self.log)
        return []

    async def _one(self) -> list[Entry]:
        entry = await self.log.find(self.loop.random.randrange(12))
        return [] if entry is None else [entry]

    def _keep(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            if self.seen.setdefault(entry.seq, entry.body) != entry.body:
                self.disagreed.append(f"slot {entry.seq} was seen to change")
