"""Memories and indexes that are wrong in ways that somebody might think of, or once were."""

from collections.abc import Collection, Sequence
from typing import Any

from pydantic_core import to_json

from perdure.api.memories import Memory
from perdure.memory.lance import CURRENT, Place
from perdure.memory.lance_rows import Row
from perdure.memory.records import NOTHING, MemoryRecords, Record, Tombstone, Version
from perdure.memory.user_memory import UserMemory
from reliability.simulation.trials.tables import NotingIndex


class MarksAfterwards(MemoryRecords):
    """The mark for the index is written behind the version."""

    async def _create(self, record: Memory | Tombstone, writes: Sequence[str]) -> bool:
        version = Version(record.id, record.version)
        fields = {**record.model_dump(mode="json"), "writes": writes}
        is_new = await self.store.create(self._key(version), to_json(fields))
        await self.store.create(self._changes + version.name, b"")
        return is_new


class KeepsLateTexts(MemoryRecords):
    """A text that comes too late stays, also of a memory that was removed."""

    async def _delete_if_late(self, version: Version) -> None:
        pass


class ReadsOnce(MemoryRecords):
    """A version that was deleted since it was listed is taken for no memory."""

    async def _load_newest(self, memory_id: str) -> Record:
        versions = await self._list_versions(memory_id)
        return await self._load(versions[-1]) if versions else NOTHING


class SettlesUnderRebuilds(UserMemory):
    """A change is settled though somebody makes the index anew, who may not have seen it."""

    async def _settle(self, changes: Sequence[Version], marks: Collection[str] = ()) -> bool:
        del marks
        await self.records.settle(changes)
        return True


class SettlesUnwrittenVersions(UserMemory):
    """A change is settled before its version is written."""

    async def _index_versions(self, versions: Sequence[Version]) -> list[Version]:
        await super()._index_versions(versions)
        return list(versions)


class MissesReplacedMemories(UserMemory):
    """A search leaves out what is replaced just then."""

    async def _read_current(self, version: Version) -> Memory | Tombstone | None:
        return await self.records.read(version)


class ReplacesAnyTable(NotingIndex):
    """A table becomes the current one whatever has become it since."""

    async def _replace(self, name: str, previous: Place) -> bool:
        del previous
        await self._store().replace(self._prefix + CURRENT, name.encode())
        return True


class DeletesNewerRows(NotingIndex):
    """A removal that is late takes what was put since out of the index."""

    async def _update_table(
        self, table: Any, rows: Sequence[Row], removed: Sequence[Version]
    ) -> None:
        whatever = [Version(version.id, version.number + 99) for version in removed]
        await super()._update_table(table, rows, whatever)
