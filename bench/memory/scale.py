"""Many memories of many users in SeaweedFS: puts, searches beside a plain scan, and the index lost.

All users have memories of the same words, so that a query fits what others have as well as what one
has oneself; whose a memory is stands in its metadata.
"""

import random
import re
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any, TypeVar

from perdure.api.memories import Memory, PutMemory
from perdure.memory.service import MemoryService
from perdure.memory.user_memory import UserMemory
from perdure.storage.keys import memory_index_prefix
from perdure.storage.parallel import map_parallel
from perdure.storage.store import Store, list_keys

T = TypeVar("T")

WORDS = 4000
"""Different words; a few are frequent, most are rare, as in texts of people."""

WORDS_PER_MEMORY = 30
PARALLEL = 8
"""Searches at once."""

SCANS = 20
"""Searches that are also done by reading all memories of the user."""


@dataclass(frozen=True)
class Plan:
    """The numbers of users, of memories of each, and of searches."""

    users: int
    memories: int
    searches: int

    def names(self) -> list[str]:
        return [f"user{nth:03d}" for nth in range(self.users)]


async def measure_scale(store: Store, plan: Plan) -> dict[str, Any]:
    service, dice = MemoryService(store), random.Random(0)
    put = await measure_puts(service, plan, dice)
    first = [await timed(service.of_user(name).search(words(dice, 3))) for name in plan.names()]
    searches = await measure_searches(service, plan, dice)
    scans = await measure_scans(service, plan, dice)
    lost = await measure_lost_index(store, plan, dice)
    return {
        "memories": plan.users * plan.memories,
        "users": plan.users,
        "put": put,
        "first search of a user": summarize([seconds for seconds, _ in first]),
        "search": searches,
        "scan": scans,
        "search without its index": lost,
    }


def words(dice: random.Random, number: int) -> str:
    """Return words of which the first are the most frequent."""
    return " ".join(f"word{int(WORDS ** dice.random())}" for _ in range(number))


async def measure_puts(service: MemoryService, plan: Plan, dice: random.Random) -> dict[str, Any]:
    drafts = [
        (name, PutMemory(text=words(dice, WORDS_PER_MEMORY), metadata={"user": name}))
        for _ in range(plan.memories)
        for name in plan.names()
    ]

    async def put(item: tuple[str, PutMemory]) -> float:
        seconds, _ = await timed(service.of_user(item[0]).put(item[1]))
        return seconds

    begun = time.perf_counter()
    taken = [seconds async for seconds in map_parallel(put, drafts, first=32, most=32)]
    return {**summarize(taken), "per second": round(len(taken) / (time.perf_counter() - begun))}


async def measure_searches(
    service: MemoryService, plan: Plan, dice: random.Random
) -> dict[str, Any]:
    """Search as many users at once; count the results that are another user's."""
    asked = [(dice.choice(plan.names()), words(dice, 3)) for _ in range(plan.searches)]
    counts = {"results": 0, "results of another user": 0, "searches without a result": 0}

    async def search(item: tuple[str, str]) -> float:
        name, query = item
        seconds, found = await timed(service.of_user(name).search(query))
        counts["results"] += len(found)
        counts["results of another user"] += sum(it.memory.metadata["user"] != name for it in found)
        counts["searches without a result"] += not found
        return seconds

    begun = time.perf_counter()
    taken = [
        seconds async for seconds in map_parallel(search, asked, first=PARALLEL, most=PARALLEL)
    ]
    rate = round(len(taken) / (time.perf_counter() - begun))
    alone = [(await timed(service.of_user(name).search(query)))[0] for name, query in asked[:100]]
    return {
        "alone": summarize(alone),
        f"{PARALLEL} at once": {**summarize(taken), "per second": rate},
        "searches": len(asked),
        **counts,
    }


async def measure_scans(service: MemoryService, plan: Plan, dice: random.Random) -> dict[str, Any]:
    """Do without an index: read all memories of a user, and count the words of the query."""

    async def scan(memory: UserMemory, query: str) -> list[Memory]:
        versions = [version async for version in memory.records.list_newest()]
        wanted = set(query.split())
        scored = [
            (len(wanted & set(re.findall(r"\w+", it.text))), it)
            for it in await memory.records.read_all(versions)
        ]
        best = sorted((it for it in scored if it[0]), key=lambda it: -it[0])
        return [memory for _, memory in best[:10]]

    taken = [
        (await timed(scan(service.of_user(dice.choice(plan.names())), words(dice, 3))))[0]
        for _ in range(SCANS)
    ]
    return {"alone": summarize(taken), "searches": SCANS}


async def measure_lost_index(store: Store, plan: Plan, dice: random.Random) -> dict[str, Any]:
    """Delete the index of each user, and search: the results have to be those of before."""
    taken, same = [], 0
    names = plan.names()[:10]
    for name in names:
        query = words(dice, 3)
        before = await MemoryService(store).of_user(name).search(query)
        keys = [key async for key in list_keys(store, memory_index_prefix(name))]
        async for _ in map_parallel(store.delete, keys):
            pass
        seconds, after = await timed(MemoryService(store).of_user(name).search(query))
        taken.append(seconds)
        same += ids_of(before) == ids_of(after)
    return {**summarize(taken), "indexes": len(names), "same results": same}


def ids_of(found: Sequence[Any]) -> list[tuple[str, float]]:
    """Return what was found with its score: memories of the same score may change places."""
    return sorted((it.memory.id, round(it.score, 3)) for it in found)


async def timed(work: Awaitable[T]) -> tuple[float, T]:
    begun = time.perf_counter()
    result = await work
    return time.perf_counter() - begun, result


def summarize(seconds: Sequence[float]) -> dict[str, float]:
    """Return the median and the 95th percentile, in milliseconds."""
    last = quantiles(seconds, n=20)[-1] if len(seconds) > 1 else seconds[0]
    return {"median ms": round(median(seconds) * 1000, 1), "p95 ms": round(last * 1000, 1)}
