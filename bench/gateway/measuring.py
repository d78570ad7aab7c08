"""What a server uses while something is done, a second and a client."""

import os
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any


@dataclass(frozen=True)
class Usage:
    """The use of a server so far: seconds of CPU, bytes of memory, and requests by name.

    `requests` are those to the store and to Temporal, None where it has neither; `others` the
    seconds of CPU of the processes that work for it, by name.
    """

    cpu: float
    memory: int
    requests: dict[str, Counter[str]] | None = None
    others: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Measured:
    """The use of a server between two moments; `load` is the machine's load before."""

    seconds: float
    load: float
    before: Usage
    after: Usage

    def describe(self, clients: int, bare: int) -> dict[str, Any]:
        """Return the figures, with the memory a client over `bare` bytes."""
        cpu = (self.after.cpu - self.before.cpu) / self.seconds
        figures = {
            "seconds": round(self.seconds, 1),
            "load_average_before": round(self.load, 2),
            "cpu_percent_of_a_core": round(100 * cpu, 2),
            "cpu_us_a_client_a_second": round(1e6 * cpu / clients, 1),
            "memory_mb": round(self.after.memory / 1e6, 1),
            "memory_kb_a_client": round((self.after.memory - bare) / 1000 / clients, 1),
            "others": {
                name: round(100 * (used - self.before.others[name]) / self.seconds, 1)
                for name, used in self.after.others.items()
            },
        }
        if self.before.requests is not None and self.after.requests is not None:
            for kind, counts in self.after.requests.items():
                made = counts - self.before.requests[kind]
                figures[f"{kind}_requests_a_second"] = round(made.total() / self.seconds, 2)
                figures[kind] = {
                    name: round(count / self.seconds, 2) for name, count in sorted(made.items())
                }
        return figures


async def measure_while(measure: Callable[[], Awaitable[Usage]], work: Awaitable[Any]) -> Measured:
    """Measure a server while some work is done."""
    load, before, began = os.getloadavg()[0], await measure(), monotonic()
    await work
    seconds = monotonic() - began
    return Measured(seconds, load, before, await measure())
