"""The cost of a piece of work: wall time, and CPU of this process and of the servers."""

import resource
import time
from collections.abc import Iterable
from dataclasses import dataclass

from bench.processes import cpu_seconds


@dataclass(frozen=True)
class Cost:
    """Seconds; `cpu` is ours and Temporal's, `store` that of the store's server."""

    time: float
    own: float
    temporal: float
    store: float

    @property
    def cpu(self) -> float:
        return self.own + self.temporal

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(
            self.time - other.time,
            self.own - other.own,
            self.temporal - other.temporal,
            self.store - other.store,
        )


def cost(temporal: int, store: Iterable[int] = ()) -> Cost:
    """Return the cost up to now, given the pids of the servers."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return Cost(
        time=time.perf_counter(),
        own=usage.ru_utime + usage.ru_stime,
        temporal=cpu_seconds(temporal),
        store=sum(map(cpu_seconds, store)),
    )
