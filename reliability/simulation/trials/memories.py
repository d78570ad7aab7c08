"""The memories of a user: written, removed, indexed and found by several processes."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

from perdure.api.memories import FoundMemory, PutMemory
from perdure.errors import NotFound
from perdure.memory.records import MemoryRecords, find_id
from perdure.memory.user_memory import UserMemory
from perdure.storage.keys import memory_prefix
from reliability.simulation.conversation import USER
from reliability.simulation.laws import require
from reliability.simulation.store import Access
from reliability.simulation.trials.tables import NotingIndex, Tables
from reliability.simulation.trials.trial import Trial

KEYS = ("colour", "city", "name")


@dataclass
class Search:
    """The result of a search, and what was put before it and never removed."""

    found: set[str]
    due: set[str]


class MemoryTrial(Trial[UserMemory]):
    """Writers put and remove; others search, which brings the index up to date, or make it anew."""

    kind = "memory"
    part = UserMemory

    def make_resources(self, store: Access) -> UserMemory:
        records = self._choose(MemoryRecords)(store, USER)
        index = self._choose(NotingIndex)(store, self.tables)
        memory: UserMemory = self._choose(UserMemory)(records, index)
        return memory

    def _choose(self, kind: type[Any]) -> Any:
        """Return the part that is on trial if it is of this kind, else the kind."""
        return self.part if issubclass(self.part, kind) else kind

    async def act(self) -> None:
        self.tables = Tables()
        self.put: dict[tuple[str, int], str] = {}
        self.searches: list[Search] = []
        self.removed: set[str] = set()
        self.texts = count()
        dice = self.loop.random
        if dice.random() < 0.8:
            await self._put("name")
            await self._do("first index", UserMemory.reindex)
        await asyncio.gather(
            *(self._write(dice.choice((1, 2, 3))) for _ in range(dice.choice((2, 2, 3)))),
            *(self._search(dice.choice((1, 2))) for _ in range(dice.choice((1, 1, 2)))),
            *(self._get(dice.choice((1, 2))) for _ in range(dice.choice((0, 1, 2)))),
            *(self._reindex() for _ in range(dice.choice((0, 0, 1, 2, 2)))),
        )

    async def _write(self, times: int) -> None:
        for _ in range(times):
            await asyncio.sleep(self.loop.delay() * 6)
            key = self.loop.random.choice(KEYS)
            if self.loop.chance(0.2):
                await self._remove(key)
            else:
                await self._put(key)

    async def _put(self, key: str) -> None:
        draft = PutMemory(text=f"text {next(self.texts)}", key=key)
        memory = await self._do(f"put {key}", lambda memory: memory.put(draft))
        self.put[memory.id, memory.version] = draft.text

    async def _remove(self, key: str) -> None:
        memory_id = find_id(PutMemory(text="-", key=key))
        self.removed.add(memory_id)
        try:
            await self._do(f"remove {key}", lambda memory: memory.remove(memory_id))
        except NotFound:
            self.happened["not removed"] += 1

    async def _search(self, times: int) -> None:
        for _ in range(times):
            await asyncio.sleep(self.loop.delay() * 10)
            put = {name for name, _ in self.put}
            found = await self._do("search", search)
            self.searches.append(Search({it.memory.id for it in found}, put - self.removed))

    async def _get(self, times: int) -> None:
        for _ in range(times):
            await asyncio.sleep(self.loop.delay() * 4)
            for memory_id in sorted({name for name, _ in self.put} - self.removed):
                found = await self._do("get", partial(get, memory_id=memory_id))
                if memory_id not in self.removed:
                    self.searches.append(Search(found, {memory_id}))

    async def _reindex(self) -> None:
        await asyncio.sleep(self.loop.delay() * 10)
        await self._do("reindex", UserMemory.reindex)

    def _do(self, name: str, step: Callable[[UserMemory], Awaitable[Any]]) -> Awaitable[Any]:
        return self.crew.complete(name, step)

    async def settle(self) -> None:
        await search(self.make_resources(Access(self.bucket, 0.0)))

    def check(self) -> None:
        self.check_versions()
        self.check_removed()
        self.check_searches()
        self.check_search()

    def check_versions(self) -> None:
        """A memory is written as it was put, and is there unless a newer version is."""
        newest = self._newest()
        for (memory_id, version), text in self.put.items():
            bodies = self.bucket.history[f"{memory_prefix(USER)}{memory_id}.{version:06d}.json"]
            stored = [json.loads(body).get("text") for body in bodies if body is not None]
            require(text in stored, f"version {version} of {memory_id} held {stored}")
            require(newest[memory_id]["version"] >= version, f"{memory_id}: {version} is lost")

    def check_removed(self) -> None:
        """No text is left of a memory that was removed, unless its writer died or it came late."""
        if self.happened["crashed"]:
            return
        newest, prefix = self._newest(), memory_prefix(USER)
        for name, body in self.bucket.under(prefix):
            left = json.loads(body)
            whole = "text" in newest[left["id"]] or "text" not in left
            require(whole or prefix + name in self.bucket.late, f"{name} was removed: {left}")

    def check_searches(self) -> None:
        """A search finds every memory that was put before, whoever puts another text meanwhile."""
        for each in self.searches:
            require(each.due <= each.found, f"a search found {each.found}, not {each.due}")

    def check_search(self) -> None:
        """Once everything works, a search finds the newest version of each memory, and no other."""
        found = self.read_calmly(search)
        shown = {it.memory.id: it.memory.text for it in found}
        due = {name: it["text"] for name, it in self._newest().items() if "text" in it}
        require(shown == due, f"a search finds {shown}, and there are {due}")

    def _newest(self) -> dict[str, Any]:
        stored = (json.loads(body) for _, body in self.bucket.under(memory_prefix(USER)))
        return {it["id"]: it for it in sorted(stored, key=lambda it: int(it["version"]))}


async def get(memory: UserMemory, memory_id: str) -> set[str]:
    with contextlib.suppress(NotFound):
        return {(await memory.get(memory_id)).id}
    return set()


async def search(memory: UserMemory) -> list[FoundMemory]:
    return await memory.search("everything", limit=100)
