"""An index of memories whose tables note what was put into them, in the place of LanceDB's."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TypeVar

from perdure.api.memories import MemoryFilter
from perdure.memory.lance import LanceIndex
from perdure.memory.lance_rows import Match, Row, Vector
from perdure.memory.records import Version
from perdure.storage.keys import memory_index_prefix
from reliability.simulation.bucket import Bucket
from reliability.simulation.conversation import USER
from reliability.simulation.store import Access

T = TypeVar("T")

FAULTS = ("index fails",)


@dataclass
class Tables:
    """The tables on their storage: the version of each memory that they have."""

    rows: dict[str, dict[str, int]] = field(default_factory=dict)


class Table:
    """A table as one process has opened it."""

    def __init__(self, connection: "Connection", name: str) -> None:
        self.connection = connection
        self.name = name

    async def schema(self) -> Any:
        return SimpleNamespace(metadata=None)

    async def merge(self, rows: Sequence[Row], removed: Sequence[Version]) -> None:
        def merge() -> None:
            there = self._rows()
            for row in rows:
                there[row.memory.id] = max(row.memory.version, there.get(row.memory.id, 0))
            for version in removed:
                if there.get(version.id, 0) < version.number:
                    there.pop(version.id, None)

        await self.connection.ask(merge)

    async def read(self) -> dict[str, int]:
        return await self.connection.ask(lambda: dict(self._rows()))

    def _rows(self) -> dict[str, int]:
        try:
            return self.connection.tables.rows[self.name]
        except KeyError:
            raise ValueError(f"Table {self.name} was not found") from None


class Connection:
    """The part of LanceDB's connection that the index needs."""

    def __init__(self, bucket: Bucket, tables: Tables) -> None:
        self.bucket = bucket
        self.tables = tables

    async def open_table(self, name: str) -> Table:
        table = Table(self, name)
        await table.read()
        return table

    async def create_table(self, name: str, rows: Sequence[Row]) -> None:
        made = {row.memory.id: row.memory.version for row in rows}
        await self.ask(lambda: self.tables.rows.update({name: made}))

    async def list_tables(self) -> Any:
        return await self.ask(lambda: SimpleNamespace(tables=sorted(self.tables.rows)))

    async def drop_table(self, name: str, ignore_missing: bool) -> None:
        assert ignore_missing, "another process may have dropped it"
        await self.ask(lambda: self.tables.rows.pop(name, None))

    async def ask(self, request: Callable[[], T]) -> T:
        """Do something on the storage, which takes a while and may fail."""

        def attempt() -> T:
            if self.bucket.fault(FAULTS):
                raise RuntimeError("simulated")
            return request()

        return await asyncio.get_running_loop().run_in_executor(None, attempt)


class NotingIndex(LanceIndex):
    """The index, with tables of which only ids and versions are kept."""

    def __init__(self, store: Access, tables: Tables) -> None:
        super().__init__(lambda: store, memory_index_prefix(USER), None)
        self._connection = Connection(store.bucket_of, tables)

    async def _create_table(self, connection: Connection, name: str, rows: Sequence[Row]) -> None:
        await connection.create_table(name, rows)

    async def search(
        self,
        text: str,  # noqa: ARG002
        vector: Vector | None,  # noqa: ARG002
        limit: int,  # noqa: ARG002
        only: MemoryFilter,  # noqa: ARG002
    ) -> list[Match]:
        """Return everything: whatever is asked for is among it."""
        rows = await self._guard((await self._open()).read)
        return [Match(Version(name, number), 1.0) for name, number in sorted(rows.items())]

    async def _connect(self) -> Any:
        return self._connection

    async def _update_table(
        self, table: Any, rows: Sequence[Row], removed: Sequence[Version]
    ) -> None:
        await self._guard(lambda: table.merge(rows, removed))
