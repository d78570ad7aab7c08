"""A search for processes by their command line, and the files that this one has open."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

WAIT_TIMEOUT = 30.0


def find_processes(word: str) -> list[int]:
    """The processes that have `word` in their command line; a dead one has none."""
    return [int(path.name) for path in _processes() if word.encode() in _command_line(path)]


def _processes() -> list[Path]:
    return [path for path in Path("/proc").iterdir() if path.name.isdigit()]


def _command_line(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


async def wait_until(condition: Callable[[], object]) -> None:
    """Wait for it, and fail where it does not come."""
    async with asyncio.timeout(WAIT_TIMEOUT):
        while not condition():
            await asyncio.sleep(0.02)


def list_descriptors() -> set[tuple[str, str]]:
    """Return the number and the target of each file that this process has open."""
    listed = set()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the descriptor of the listing itself
            listed.add((entry.name, str(entry.readlink())))
    return listed
