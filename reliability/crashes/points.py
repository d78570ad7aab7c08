"""Crash points: named places in the work of a worker at which it can be lost.

Nobody lists them. A worker that is let alone writes down what it passes; those are the points.
"""

import asyncio
import os
import re
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from temporalio import activity

T = TypeVar("T")

Phase: TypeAlias = Literal["before", "after"]
Harm: TypeAlias = Literal["kill", "freeze", "lose"]
"""What happens at a point: the worker is killed, or it stands still until somebody thaws it, or
what it asks of the store fails: before it was done, or once it was done and nobody learns of it."""
HARMS: tuple[Harm, ...] = ("kill", "freeze", "lose")

READS = ("read", "read_version", "list", "folders")
"""The requests to a store that change nothing."""

_VARYING = re.compile(
    r"users/[^/]+/(conversations/)?|_?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/?"
)
_NUMBER = re.compile(r"\d+")
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Point:
    """`name` says who does what for which time, as in `llm.chat: create events/000004.json #1`."""

    name: str
    phase: Phase

    def __str__(self) -> str:
        return f"{self.phase} {self.name}"

    @property
    def step(self) -> str:
        return self.name.partition(":")[0]

    @property
    def kind(self) -> str:
        """The step and what it does, whatever the number of the event or of the time."""
        return _NUMBER.sub("", self.name.partition(" #")[0])

    @property
    def is_store(self) -> bool:
        return ": store." in self.name

    @property
    def is_read(self) -> bool:
        """Tell whether nothing of the store or the disk is another once it is done."""
        return any(f": store.{kind} " in self.name for kind in READS)


def read_point(line: str) -> Point:
    phase, _, name = line.partition(" ")
    assert phase in ("before", "after"), line
    return Point(name, "before" if phase == "before" else "after")


@dataclass(frozen=True)
class Trap:
    """A planned crash at a point; `sprung` is a file that is made when it happens."""

    point: Point
    harm: Harm
    reached_file: Path


class Points:
    """The points that one worker passes: each goes into `passed`, a line each."""

    def __init__(self, passed: Path, trap: Trap | None) -> None:
        self._file = os.open(passed, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._trap = trap
        self._times: Counter[str] = Counter()

    async def around(
        self, what: str, work: Callable[[], Awaitable[T]], lost: Exception | None = None
    ) -> T:
        """Do the work between the two points around it; `lost` is what a failed request raises."""
        name = self._name_of(what)
        self._pass_point(Point(name, "before"), lost)
        try:
            done = await work()
        except asyncio.CancelledError:
            raise
        except Exception:
            self._pass_point(Point(name, "after"), None)
            raise
        self._pass_point(Point(name, "after"), lost)
        return done

    def pass_by(self, what: str) -> None:
        """Pass a point of what takes no time by itself."""
        self._pass_point(Point(self._name_of(what), "before"), None)

    def _name_of(self, what: str) -> str:
        step = activity.info().activity_type if activity.in_activity() else "worker"
        name = f"{step}: {_HASH.sub('*', _VARYING.sub('', what))}"
        self._times[name] += 1
        return f"{name} #{self._times[name]}"

    def _pass_point(self, point: Point, lost: Exception | None) -> None:
        os.write(self._file, f"{point}\n".encode())
        trap = self._trap
        if trap is None or trap.point != point or (trap.harm == "lose" and lost is None):
            return
        self._trap = None
        trap.reached_file.touch()
        match trap.harm:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "freeze":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "lose":
                assert lost is not None
                raise lost
