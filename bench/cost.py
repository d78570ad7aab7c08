"""The cost of a piece of work: wall time, and CPU of workers, servers and client."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field

from bench.processes import cpu_seconds, memory_bytes

SAMPLE_INTERVAL = 0.05
"""Seconds between two samples: about two steps."""


@dataclass(frozen=True)
class Cost:
    """Seconds: `own` of the workers, `store` of its server; `cpu` is ours and Temporal's."""

    time: float
    own: float
    temporal: float
    store: float
    client: float

    @property
    def cpu(self) -> float:
        return self.own + self.temporal

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(
            self.time - other.time,
            self.own - other.own,
            self.temporal - other.temporal,
            self.store - other.store,
            self.client - other.client,
        )

    def per(self, count: int) -> dict[str, float]:
        """Return milliseconds for each of `count` steps or conversations."""
        return {
            "time_ms": 1000 * self.time / count,
            "cpu_ms": 1000 * self.cpu / count,
            "own_cpu_ms": 1000 * self.own / count,
            "temporal_cpu_ms": 1000 * self.temporal / count,
            "store_cpu_ms": 1000 * self.store / count,
            "client_cpu_ms": 1000 * self.client / count,
        }


@dataclass(frozen=True)
class Pids:
    """The processes whose CPU is counted."""

    workers: tuple[int, ...]
    temporal: int
    store: int | None
    client: int

    def cost(self) -> Cost:
        """Return the cost up to now."""
        return Cost(
            time=time.time(),
            own=_sum_cpu(self.workers),
            temporal=cpu_seconds(self.temporal),
            store=_sum_cpu([self.store] if self.store else []),
            client=cpu_seconds(self.client),
        )


def _sum_cpu(pids: Iterable[int]) -> float:
    return sum(map(cpu_seconds, pids))


@dataclass
class Samples:
    """Costs at short intervals, and the resident bytes of the worker that had most."""

    costs: list[Cost] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)

    def times(self) -> list[float]:
        return [cost.time for cost in self.costs]

    def take(self, pids: Pids) -> None:
        self.costs.append(pids.cost())
        self.memory.append(max(map(memory_bytes, pids.workers)))


@contextlib.asynccontextmanager
async def sample_costs(pids: Pids) -> AsyncIterator[Samples]:
    """Sample the costs while inside; nothing is asked of store or server."""
    samples = Samples()

    async def repeat() -> None:
        while True:
            samples.take(pids)
            await asyncio.sleep(SAMPLE_INTERVAL)

    sampling = asyncio.create_task(repeat())
    try:
        yield samples
    finally:
        sampling.cancel()
        samples.take(pids)
