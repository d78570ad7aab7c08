"""The catalog of what is in the store, without Temporal."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from perdure.cli.catalogs.catalog import WalkOrder
from perdure.cli.output import note
from perdure.client.ids import split_owner
from perdure.storage import keys
from perdure.storage.conversations import (
    list_ages,
    list_by_prefix,
    list_candidates,
    list_conversations,
    list_newest,
)
from perdure.storage.list_index import IndexLine, find_place, is_current, load_index
from perdure.storage.shared import MAX_LISTED, list_shared
from perdure.storage.store import Store, list_folders
from perdure.storage.summary import Summary
from perdure.wording import count

MANY = 200
"""Conversations that are read without a remark."""

PARALLEL_SUMMARIES = 32

MAX_INDEX_OBJECTS = 64
"""Objects of an index above which it saves a list less than it takes to read them."""


class StoreCatalog:
    """The conversations and batches of a user in a store.

    With `shared` it walks over the conversations that others share: an id is `USER/ID`.
    """

    def __init__(self, store: Store, user_id: str, shared: bool = False) -> None:
        self._store = store
        self._shared = shared
        self._user_id = user_id
        self.ids: list[str] = []
        self._index: dict[str, IndexLine] | None = None

    async def newest(self) -> str | None:
        return next(iter(await list_conversations(self._store, self._user_id, 1)), None)

    async def list_by_prefix(self, start: str, limit: int) -> list[str]:
        return await list_by_prefix(self._store, self._user_id, start, limit)

    async def list_batches(self) -> list[str]:
        return await list_folders(self._store, keys.batches_prefix(self._user_id))

    async def summarize(self, ids: list[str]) -> list[Summary | None]:
        return await asyncio.gather(*map(self._summarize, ids))

    async def walk(
        self,
        may_match: Callable[[str], bool],
        limit: int,
        *,
        order: WalkOrder = "newest",
        with_message: bool = False,
    ) -> AsyncIterator[Summary]:
        """Yield the summaries in order, read a page at a time."""
        size = min(limit, PARALLEL_SUMMARIES)
        async for listed in self._list_parts(order, limit):
            ids = [id for id in listed if may_match(split_owner(id)[0])]
            for first in range(0, len(ids), size):
                if first < MANY <= first + size:
                    note(f"{count(len(ids), 'conversation')} may have to be read for this ...")
                page = ids[first : first + size]
                found = await asyncio.gather(*(self._summarize(it, with_message) for it in page))
                for summary in filter(None, found):
                    yield summary

    async def _list_parts(self, order: WalkOrder, limit: int) -> AsyncIterator[list[str]]:
        """Yield the ids in order, the newest of very many by themselves."""
        newest = await self._list_newest(limit) if order == "newest" else None
        if newest is not None:
            self.ids = [*newest, *((self._index or {}).keys() - set(newest))]
            yield newest
        self.ids = await self._list_ids(order)
        ids = self.ids[::-1] if order == "oldest" else self.ids
        seen = frozenset(newest or ())
        yield [id for id in ids if id not in seen]

    async def _list_newest(self, limit: int) -> list[str] | None:
        """List the newest ids; None where all are listed as quickly."""
        if self._shared or not getattr(self._store, "lists_from_names", False):
            return None
        return await list_newest(self._store, self._user_id, await self._load_index(), limit)

    async def _load_index(self) -> dict[str, IndexLine]:
        if self._index is None:
            stored = await load_index(self._store, self._user_id, max_objects=MAX_INDEX_OBJECTS)
            self._index = stored.merge()
        return self._index

    async def _list_ids(self, order: WalkOrder) -> list[str]:
        if self._shared:
            shared = await list_shared(self._store, self._user_id, "conversation", MAX_LISTED)
            return [f"{it.owner}/{it.id}" for it in shared]
        if order != "activity":
            _, ids = await asyncio.gather(
                self._load_index(), list_candidates(self._store, self._user_id)
            )
            return ids
        stored, ages = await asyncio.gather(
            load_index(self._store, self._user_id), list_ages(self._store, self._user_id)
        )
        index = self._index = stored.merge()
        return [
            name for _, name in sorted((find_place(age, name, index), name) for age, name in ages)
        ][::-1]

    async def _summarize(self, name: str, with_message: bool = False) -> Summary | None:
        """Summarize a conversation: nothing has changed where the index is current."""
        line = self._index.get(name) if self._index else None
        if line is not None and line.is_lasting and not with_message:
            known = line.decode()
            if known is not None and await is_current(self._store, self._user_id, known):
                return known
        from perdure.storage.summaries import summarize  # slow: the models of a state

        id, owner = split_owner(name)
        found = await summarize(self._store, owner or self._user_id, id, with_message)
        return found and replace(found, id=name)
