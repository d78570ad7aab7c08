"""The memories of one user, and their index, which follows them.

Each user has a folder of memories and a table of their own: no query can reach another's.
"""

import asyncio
import contextlib
from collections.abc import Collection, Sequence

from perdure.api.memories import FoundMemory, Memory, MemoryFilter, PutMemory
from perdure.errors import Invalid, NotFound
from perdure.memory.embedding import Embedder
from perdure.memory.lance import IndexLost, LanceIndex
from perdure.memory.lance_rows import Match, Row
from perdure.memory.records import A_USER, Author, MemoryRecords, Tombstone, Version
from perdure.storage.errors import StoreUnavailable

SPARE_MATCHES = 20
"""Results that are asked for beyond the limit, as some may be out of date."""

MAX_REPAIRS = 5
"""Times that the index is made anew at once, or that another process is waited for."""

ALWAYS_REBUILT = "The index of memories is made anew over and over: try again."

MAX_CATCH_UPS = 1000
"""Pages of changes that a search takes in before it looks."""

EMBEDDED_AT_ONCE = 64
"""Texts that an embedding model gets in one request."""

MAX_EMBEDDED_CHARS = 8000
"""Characters of a text that an embedding model is shown; full text has all of it."""

EVERYTHING = MemoryFilter()


class UserMemory:
    """The memories of one user. Methods raise Invalid for a bad id, and StoreError.

    `embedder` makes vectors; without one, memories are found by full text alone.
    """

    def __init__(
        self, records: MemoryRecords, index: LanceIndex, embedder: Embedder | None = None
    ) -> None:
        self.records = records
        self.index = index
        self.embedder = embedder
        self._updating = asyncio.Lock()

    async def put(
        self, draft: PutMemory, author: Author = A_USER, memory_id: str | None = None
    ) -> Memory:
        """Remember a text. One with the key of another takes its place, under the same id.

        A second put of the same content and the same key, or `memory_id`, changes nothing.
        """
        memory, _ = await self.records.put(draft, author, memory_id)
        assert memory is not None, "a put revives what was removed"
        return memory

    async def get(self, memory_id: str) -> Memory:
        """Return a memory. Raises NotFound."""
        try:
            memory = await self.records.get(memory_id)
        except ValueError as error:
            raise bad_id(memory_id) from error
        if memory is None:
            raise no_such(memory_id)
        return memory

    async def remove(self, memory_id: str) -> None:
        """Remove a memory, and delete its text. Raises NotFound."""
        try:
            was_there = await self.records.remove(memory_id)
        except ValueError as error:
            raise bad_id(memory_id) from error
        if not was_there:
            raise no_such(memory_id)

    async def list_memories(
        self, limit: int, after: str = "", only: MemoryFilter = EVERYTHING
    ) -> list[Memory]:
        """List memories in the order of their ids, from the one that follows the id `after`."""
        found: list[Memory] = []
        page: list[Version] = []
        async for version in self.records.list_newest(after):
            page.append(version)
            if len(page) == limit:
                found += filter(only.accepts, await self.records.read_all(page))
                page = []
                if len(found) >= limit:
                    return found[:limit]
        found += filter(only.accepts, await self.records.read_all(page))
        return found[:limit]

    async def search(
        self, query: str, limit: int = 10, only: MemoryFilter = EVERYTHING
    ) -> list[FoundMemory]:
        """Find the memories that fit a query best, all that were put before among them.

        What the index finds is read from the store, so that nothing removed or replaced is found.
        Raises MissingExtra, and ClientError if the embedding model fails.
        """
        vector = None
        if self.embedder is not None:
            [vector] = await self.embedder.embed([query[:MAX_EMBEDDED_CHARS]])
        for _ in range(MAX_REPAIRS):
            try:
                await self.catch_up()
                matches = await self.index.search(query, vector, limit + SPARE_MATCHES, only)
            except IndexLost:
                # Unless another process has just made it anew.
                if not await self.index.is_whole() and not await self.reindex():
                    return []
            else:
                return await self._read_matches(matches, limit, only)
        raise StoreUnavailable(ALWAYS_REBUILT)

    async def catch_up(self) -> None:
        """Bring the index up to date with what was put and removed since. Raises IndexLost."""
        async with self._updating:
            for _ in range(MAX_CATCH_UPS):
                if not await self._take_changes():
                    return

    async def reindex(self) -> int:
        """Make the index anew from the memories, and return how many it has."""
        async with self._updating:
            for _ in range(MAX_REPAIRS):
                with contextlib.suppress(IndexLost):  # another process has replaced it again
                    if (number := await self._rebuild()) is not None:
                        return number
        raise StoreUnavailable(ALWAYS_REBUILT)

    async def _rebuild(self) -> int | None:
        """Make the index anew once; None if memories were put while there were none."""
        # In this order: who has noted it earlier, and would still replace this table, fails.
        previous = await self.index.read_place()
        mark = await self.records.note_rebuild()
        marks = await self.records.list_rebuilds()
        changes = await self.records.list_all_changes()
        before = {version async for version in self.records.list_newest()}
        memories = await self.records.read_all(sorted(before))
        if not await self.index.rebuild(await self._to_rows(memories), previous):
            await self.records.end_rebuilds([mark])
            return len(memories)  # another process has made it anew meanwhile
        # Another process may have taken later changes into the table of before.
        after = [version async for version in self.records.list_newest()]
        later = [version for version in after if version not in before]
        if later and not memories:
            return None
        if later:
            await self._index_versions(later)
        newest = {version.id: version for version in before}
        known = [it for it in changes if it.id in newest and it <= newest[it.id]]
        await self._settle(known, marks)
        await self.records.end_rebuilds(marks)
        return len(memories)

    async def _take_changes(self) -> bool:
        """Take a page of changes into the index; return whether there may be more."""
        changes = await self.records.list_changes()
        if not changes:
            return False
        known = await self._index_versions(changes)
        if not await self._settle(known):
            await self._index_versions(await self.records.list_all_changes())
            return False
        return bool(known)

    async def _settle(self, changes: Sequence[Version], marks: Collection[str] = ()) -> bool:
        """Settle changes; not, and return False, if others than of `marks` make the index anew."""
        if await self.records.list_rebuilds() - set(marks):
            return False
        await self.records.settle(changes)
        return True

    async def _index_versions(self, versions: Sequence[Version]) -> list[Version]:
        """Index the newest of the versions of each memory; return those that are written."""
        newest = {version.id: version for version in sorted(versions)}
        records = await asyncio.gather(*map(self._read_current, newest.values()))
        found = {record.id: record for record in records if record is not None}
        memories = [record for record in found.values() if isinstance(record, Memory)]
        stones = [record for record in found.values() if isinstance(record, Tombstone)]
        removed = [Version(stone.id, stone.version) for stone in stones]
        if found:
            await self.index.update(await self._to_rows(memories), removed)
        return [
            version
            for version in versions
            if version.id in found and version.number <= found[version.id].version
        ]

    async def _read_current(self, version: Version) -> Memory | Tombstone | None:
        """Read a version, or the newest one if it was deleted; None if it is not written yet."""
        record = await self.records.read(version)
        return record or await self.records.read_newest(version.id)

    async def _to_rows(self, memories: Sequence[Memory]) -> list[Row]:
        if self.embedder is None:
            return [Row(memory) for memory in memories]
        texts = [memory.text[:MAX_EMBEDDED_CHARS] for memory in memories]
        vectors: list[list[float]] = []
        for first in range(0, len(texts), EMBEDDED_AT_ONCE):
            vectors += await self.embedder.embed(texts[first : first + EMBEDDED_AT_ONCE])
        return [Row(memory, vector) for memory, vector in zip(memories, vectors, strict=True)]

    async def _read_matches(
        self, matches: Sequence[Match], limit: int, only: MemoryFilter
    ) -> list[FoundMemory]:
        """Read what was found, each memory once; leave out what is there no longer."""
        found: dict[str, FoundMemory] = {}
        for first in range(0, len(matches), limit):
            part = matches[first : first + limit]
            # The newest version stands for one that was replaced just now.
            records = await asyncio.gather(*(self._read_current(match.version) for match in part))
            for match, record in zip(part, records, strict=True):
                if isinstance(record, Memory) and only.accepts(record):
                    found.setdefault(record.id, FoundMemory(memory=record, score=match.score))
            if len(found) >= limit:
                break
        return list(found.values())[:limit]


def bad_id(memory_id: str) -> Invalid:
    return Invalid(f"{memory_id!r} is no id of a memory.", "It is a UUID; `perdure memory ls`.")


def no_such(memory_id: str) -> NotFound:
    return NotFound(f"There is no memory {memory_id}.", "`perdure memory ls` lists them.")
