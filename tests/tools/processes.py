"""Looking at the machine's processes."""

import asyncio
from collections.abc import Callable
from pathlib import Path

PATIENCE = 30.0


def alive(word: str) -> list[int]:
    """The processes that have `word` in their command line; a dead one has none."""
    return [int(path.name) for path in _processes() if word.encode() in _command_line(path)]


def _processes() -> list[Path]:
    return [path for path in Path("/proc").iterdir() if path.name.isdigit()]


def _command_line(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


async def until(condition: Callable[[], object]) -> None:
    """Wait for it, and fail where it does not come."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.02)
