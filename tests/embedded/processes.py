"""What the tests of this room ask about processes."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


def alive(pid: int) -> bool:
    """Whether `pid` runs; one that ended and that nobody asked about does not."""
    if not Path("/proc/self").exists():
        return _signalled(pid)
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def _signalled(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def eventually(condition: Callable[[], bool], limit: float = 60.0) -> None:
    """Waits until `condition()` holds; TimeoutError where it never does."""
    async with asyncio.timeout(limit):
        while not condition():
            await asyncio.sleep(0.02)
