"""A search for processes by their command line."""

import asyncio
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
