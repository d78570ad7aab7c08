"""The options of one worker process: which kinds of steps it takes, how many, and how it ends.

Nothing slow is imported here: `perdure worker` reads this before it becomes the worker.
"""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from perdure.errors import Invalid

WorkerKind: TypeAlias = Literal["model", "tools", "workflows"]
KINDS: tuple[WorkerKind, ...] = get_args(WorkerKind)

DEFAULT_GRACE = 10.0
"""Seconds from SIGTERM to the exit."""

MARGIN = 5.0
"""Seconds at the end of the grace, or half of it, in which steps that are cut off are recorded."""

UNITS = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True)
class WorkerOptions:
    """The options of a worker process; by default it takes everything.

    `concurrency` is the number of steps at work at once from each task queue, `max_memory` is in
    bytes, `grace` in seconds. Probes are answered at `health_port`, or at the listening socket
    with the file descriptor `health_fd`.
    """

    kinds: frozenset[WorkerKind] = frozenset(KINDS)
    concurrency: int | None = None
    max_memory: int | None = None
    grace: float = DEFAULT_GRACE
    health_port: int | None = None
    health_fd: int | None = None
    heartbeat_interval: float = 0.25
    """Seconds between two heartbeats; the settings decide on it, not the command line."""

    @property
    def step_grace(self) -> float:
        """The seconds in which steps may finish; those that do not are cut off and recorded."""
        return self.grace - min(MARGIN, self.grace / 2)

    def as_arguments(self) -> list[str]:
        """Return the arguments that `parse_options` reads as these options."""
        values = {
            "--concurrency": self.concurrency,
            "--max-memory": self.max_memory,
            "--grace": self.grace if self.grace != DEFAULT_GRACE else None,
            "--health-port": self.health_port,
            "--health-fd": self.health_fd,
        }
        named = [[name, f"{value}"] for name, value in values.items() if value is not None]
        if self.kinds != frozenset(KINDS):
            named += [["--only", kind] for kind in sorted(self.kinds)]
        return [word for words in named for word in words]


def parse_options(arguments: Sequence[str]) -> WorkerOptions:
    """Parse the arguments of a worker process; wrong ones end it with exit code 2."""
    parser = argparse.ArgumentParser(prog="perdure worker")
    parser.add_argument("--only", choices=KINDS, action="append")
    parser.add_argument("--concurrency", type=int)
    parser.add_argument("--max-memory", type=int)
    parser.add_argument("--grace", type=float, default=DEFAULT_GRACE)
    parser.add_argument("--health-port", type=int)
    parser.add_argument("--health-fd", type=int)
    parsed = parser.parse_args(arguments)
    return WorkerOptions(
        frozenset(parsed.only or KINDS),
        parsed.concurrency,
        parsed.max_memory,
        parsed.grace,
        parsed.health_port,
        parsed.health_fd,
    )


def parse_size(text: str) -> int:
    """Return the bytes that a text such as `2GiB`, `512M` or `1500000` stands for. Raises Invalid.

    Units are powers of 1024, however they are spelled.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(B|[KMGT]?)(?:iB|B)?", text.strip(), re.IGNORECASE)
    size = int(float(found[1]) * UNITS[found[2].upper()]) if found else 0
    if size < 1:
        raise Invalid(f"{text!r} is no size of memory.", "Write it as 2GiB or 512MiB.")
    return size


def format_size(size: int) -> str:
    """Return a number of bytes for people."""
    unit = "GiB" if size >= 1 << 30 else "MiB"
    return f"{size / (1 << 30 if unit == 'GiB' else 1 << 20):.4g} {unit}"
