"""The run of a target on one input, with its coverage, time and memory."""

import signal
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = str(Path(__file__).parents[2])
TESTS = str(Path(ROOT, "tests"))
INSTALLED = "site-packages"

INPUT_TIMEOUT = 10
"""Seconds of an input: what takes as long, hangs."""

BASE_MEMORY_BYTES = 32 << 20
"""Bytes of memory that any input may take."""


class Hanging(BaseException):
    """Not an Exception: what is under test must not take it for a fault of its own."""


class Growing(AssertionError):
    pass


@dataclass(frozen=True)
class Target:
    """`run` may raise nothing but `refuses`; whatever else it raises is found.

    It takes at most `growth` bytes of memory for each byte of its input, besides BASE.
    """

    name: str
    run: Callable[[bytes], None]
    seeds: tuple[bytes, ...]
    refuses: tuple[type[Exception], ...] = ()
    growth: int = 200


def check_error(error: Exception, most: int | None = None) -> None:
    """An error says what is wrong, and not more than somebody reads."""
    message = str(error)
    assert message.strip(), f"{error!r} says nothing"
    assert most is None or len(message) <= most, f"{len(message):,} characters: {message[:200]!r}"


def run_target(target: Target, data: bytes) -> None:
    """Raises what is wrong."""
    try:
        target.run(data)
    except target.refuses as error:
        check_error(error)


def run_with_memory_check(target: Target, data: bytes) -> None:
    """Run a target. Raises what it raises, and Growing if it takes too much memory."""
    tracemalloc.start()
    try:
        run_target(target, data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    if peak > BASE_MEMORY_BYTES + target.growth * len(data):
        raise Growing(f"{peak:,} bytes of memory for an input of {len(data):,}")


@contextmanager
def time_limit(seconds: float = INPUT_TIMEOUT) -> Iterator[None]:
    """Raises Hanging where the body takes too long. Only for the main thread."""
    before = signal.signal(signal.SIGALRM, raise_hanging)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def raise_hanging(_signal: int, _frame: FrameType | None) -> None:
    raise Hanging("it takes too long")


class Coverage:
    """The lines of the product that were ever reached."""

    def __init__(self) -> None:
        self._seen: set[tuple[CodeType, int]] = set()
        self._ours: dict[CodeType, bool] = {}

    @contextmanager
    def tracing(self) -> Iterator[None]:
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(None)

    def __len__(self) -> int:
        return len(self._seen)

    def _called(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        code = frame.f_code
        if code not in self._ours:
            name = code.co_filename
            mine = name.startswith(ROOT) and not name.startswith(TESTS) and INSTALLED not in name
            self._ours[code] = mine
        return self._line if self._ours[code] else None

    def _line(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        self._seen.add((frame.f_code, frame.f_lineno))
        return self._line
