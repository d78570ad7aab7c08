"""What a piece of work took: wall time, and CPU of this process and of the servers."""

import os
import resource
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


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
    """The cost up to now, given the pids of the servers."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return Cost(
        time=time.perf_counter(),
        own=usage.ru_utime + usage.ru_stime,
        temporal=_cpu(temporal),
        store=sum(map(_cpu, store)),
    )


def _cpu(pid: int) -> float:
    """Seconds of CPU that a process has used; source: proc(5), fields 14 and 15 of `stat`."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS
