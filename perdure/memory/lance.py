"""The index of one user's memories in LanceDB: full text, and vectors where there are some.

It is a cache: what it finds is read from the store again. The library is slow to import (a second)
and large, so that it is imported where it is first used.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from random import uniform
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from perdure.api.memories import MemoryFilter
from perdure.errors import Invalid, PerdureError
from perdure.memory.lance_rows import (
    MODEL_KEY,
    Match,
    Row,
    Vector,
    condition,
    load_library,
    older_than,
    score,
    text_index,
    to_arrow,
    to_new_table,
)
from perdure.memory.records import Version
from perdure.storage.conversations import creation_time
from perdure.storage.errors import StoreUnavailable
from perdure.storage.ids import new_sortable_id
from perdure.storage.keys import is_conversation_id
from perdure.storage.places import find_place
from perdure.storage.store import Store

T = TypeVar("T")
MAX_UNINDEXED = 500
"""Rows that a search reads one by one, before they are added to the index of full text."""

OLD_VERSIONS = timedelta(hours=1)
"""Age of versions of the table, which a search may still read, at which they are deleted."""

CREDENTIALS_LIFETIME = 600.0
"""Seconds for which the credentials of a session are used."""

CONFLICT_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)
"""The longest pauses, in seconds, before a change is repeated that met another process's."""

TABLE_PREFIX = "memories-"
CURRENT = "current"
"""The object with the name of the current table."""

MAX_TABLE_AGE = timedelta(hours=1)
"""Age at which a table that is not current is that of a process that was killed."""

DISTANCE = "cosine"
TEXT_INDEX = "text_idx"
"""The name that LanceDB gives to the index of the column `text`."""


class Place(NamedTuple):
    """The name of the current table, empty if there is none, and the version of its object."""

    table: str = ""
    tag: str | None = None


class IndexLost(PerdureError):
    """There is no whole index: it was deleted, or never made."""


class LanceIndex:
    """The tables of one user in the folder `prefix` of a store, of which one is current.

    A new index is a table of its own, and becomes current once it is whole: whoever is killed
    leaves the old one. Any process may use them at the same time. `model` is the name of this
    process' embedding model; one without finds by full text what others have put, and its rows
    lack vectors. Methods raise StoreUnavailable, and IndexLost where there is no current table, or
    one with the vectors of another model.
    """

    def __init__(self, store: Callable[[], Store], prefix: str, model: str | None) -> None:
        self._store = store
        self._prefix = prefix
        self.model = model
        self._connection: Any = None
        self._tables: dict[str, Any] = {}
        self._renew_at = 0.0

    async def read_place(self) -> Place:
        """Read which table is current, for `rebuild`."""
        found = await self._store().read_version(self._prefix + CURRENT)
        return Place() if found is None else Place(found.body.decode(errors="replace"), found.tag)

    async def rebuild(self, rows: Sequence[Row], previous: Place) -> bool:
        """Make a table of these rows, the current one in the place of `previous`; drop that.

        Without rows there is no table. False if another process was faster: its table stays.
        """
        connection, name = await self._connect(), ""
        if rows:
            name = f"{TABLE_PREFIX}{new_sortable_id()}"
            await self._guard(lambda: self._create_table(connection, name, rows))
        if not await self._replace(name, previous):
            await self._guard(partial(connection.drop_table, name, ignore_missing=True))
            return False
        listed = (await self._guard(connection.list_tables)).tables
        for outdated in (
            it for it in listed if it == previous.table or (it != name and _is_old(it))
        ):
            await self._guard(partial(connection.drop_table, outdated, ignore_missing=True))
        return True

    async def _create_table(self, connection: Any, name: str, rows: Sequence[Row]) -> None:
        data = await asyncio.to_thread(to_new_table, rows, self.model)
        table = await connection.create_table(name, data=data)
        await table.create_index("text", config=text_index())

    async def _replace(self, name: str, previous: Place) -> bool:
        """Make a table the current one if `previous` still is: a late request changes nothing."""
        key, body = self._prefix + CURRENT, name.encode()
        if previous.tag is None:
            written = await self._store().create(key, body)
        else:
            written = await self._store().replace_version(key, body, previous.tag)
        # A store may call its own write another's, where the answer was lost.
        return written or await self._read_current() == name

    async def is_whole(self) -> bool:
        """Tell whether there is a current table that this process can use."""
        try:
            await self._open()
        except IndexLost:
            return False
        return True

    async def update(self, rows: Sequence[Row], removed: Sequence[Version]) -> None:
        """Put rows in the place of older versions of them; delete what is older than `removed`."""
        while True:
            name = await self._read_current()
            await self._update_table(await self._open(), rows, removed)
            if await self._read_current() == name:  # else its replacement may lack these rows
                return

    async def _update_table(
        self, table: Any, rows: Sequence[Row], removed: Sequence[Version]
    ) -> None:
        if rows:
            merge = table.merge_insert("id")
            merge = merge.when_matched_update_all(where="target.version < source.version")
            merge = merge.when_not_matched_insert_all()
            new = await asyncio.to_thread(to_arrow, rows, await self._guard(table.schema))
            await self._guard(lambda: merge.execute(new, on_bad_vectors="null"))
        if removed:
            await self._guard(lambda: table.delete(older_than(removed)))
        statistics = await self._guard(lambda: table.index_stats(TEXT_INDEX))
        if statistics is None or statistics.num_unindexed_rows > MAX_UNINDEXED:
            await self._guard(lambda: table.optimize(cleanup_older_than=OLD_VERSIONS))

    async def search(
        self, text: str, vector: Vector | None, limit: int, only: MemoryFilter
    ) -> list[Match]:
        """Search by full text; with a vector, rank by both together."""
        table = await self._open()
        query = table.query()
        if vector is None:
            query = query.nearest_to_text(text, columns="text")
        else:
            by_ranks = load_library().rerankers.RRFReranker()
            query = query.nearest_to(list(vector)).distance_type(DISTANCE)
            query = query.nearest_to_text(text, columns="text").rerank(by_ranks)
        return await self._collect(query, limit, only)

    async def search_vector(self, vector: Vector, limit: int, only: MemoryFilter) -> list[Match]:
        """Search by the vector alone."""
        query = (await self._open()).query().nearest_to(list(vector)).distance_type(DISTANCE)
        return await self._collect(query, limit, only)

    async def count(self) -> int:
        """Count the rows."""
        counted: int = await self._guard((await self._open()).count_rows)
        return counted

    async def _collect(self, query: Any, limit: int, only: MemoryFilter) -> list[Match]:
        if wanted := condition(only):
            query = query.where(wanted)
        query = query.select(["id", "version"]).limit(limit)
        found = (await self._guard(query.to_arrow)).to_pylist()
        return [Match(Version(row["id"], row["version"]), score(row)) for row in found]

    async def _open(self) -> Any:
        """Open the current table."""
        connection, name = await self._connect(), await self._read_current()
        if not name:
            raise IndexLost("The index of memories was never made.")
        if name not in self._tables:
            table = await self._guard(lambda: connection.open_table(name))
            metadata = (await self._guard(table.schema)).metadata or {}
            if self.model is not None and metadata.get(MODEL_KEY) != self.model.encode():
                raise IndexLost("The index of memories is of another embedding model.")
            self._tables = {name: table}
        return self._tables[name]

    async def _read_current(self) -> str:
        """Read the name of the current table; empty without one."""
        return ((await self._store().read(self._prefix + CURRENT)) or b"").decode(errors="replace")

    async def _connect(self) -> Any:
        if self._connection is None or monotonic() > self._renew_at:
            library = await asyncio.to_thread(load_library)
            place = await asyncio.to_thread(find_place, self._store(), self._prefix)
            if place is None:
                raise Invalid(
                    "The index of memories cannot be kept in a store of this kind.",
                    "Set `index` of the table [memory] to s3://bucket or file:///folder.",
                )
            lifetime = CREDENTIALS_LIFETIME if place.expires else float("inf")
            self._tables, self._renew_at = {}, monotonic() + lifetime
            self._connection = await library.lancedb.connect_async(
                place.url,
                storage_options=place.options or None,
                read_consistency_interval=timedelta(0),
            )
        return self._connection

    async def _guard(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call the library, again where another process was faster; convert its errors.

        They have no types of their own.
        """
        for pause in (*CONFLICT_PAUSES, None):
            try:
                return await call()
            except (RuntimeError, ValueError, OSError) as error:
                text = str(error).lower()
                if "conflict" in text and pause is not None:
                    await asyncio.sleep(uniform(0, pause))
                    continue
                self._tables = {}
                if "not found" in text:
                    raise IndexLost(str(error)) from error
                raise _unavailable(error) from error
        raise AssertionError("the last attempt returns or raises")


def _unavailable(error: Exception) -> StoreUnavailable:
    reason = str(error).partition("\n")[0][:500]
    return StoreUnavailable(
        f"The index of memories cannot be used: {reason}. If that lasts, `perdure memory reindex` "
        "makes it anew."
    )


def _is_old(table: str) -> bool:
    """Tell whether a table that is not current was left behind."""
    table_id = table.removeprefix(TABLE_PREFIX)
    made = creation_time(table_id) if is_conversation_id(table_id) else None
    return made is not None and datetime.now(UTC) - made > MAX_TABLE_AGE
