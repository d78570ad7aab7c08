"""Helpers for tests of processes."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

SLEEP_COMMAND = [sys.executable, "-c", "import time; time.sleep(600)"]


def is_alive(pid: int) -> bool:
    """Tell whether `pid` runs; a zombie does not."""
    if not Path("/proc/self").exists():
        return _accepts_signals(pid)
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def _accepts_signals(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def wait_until(condition: Callable[[], bool], limit: float = 60.0) -> None:
    """Wait until `condition()` holds. Raises TimeoutError if it never does."""
    async with asyncio.timeout(limit):
        while not condition():
            await asyncio.sleep(0.02)


def read_niceness(pid: int) -> tuple[int, int | None]:
    """Return the nice value of a process, and that of its session where Linux has autogroups."""
    group = Path(f"/proc/{pid}/autogroup")
    text = group.read_text() if group.exists() else ""
    return os.getpriority(os.PRIO_PROCESS, pid), int(text.split()[-1]) if text else None


def may_set_session_niceness(preparation: str = "") -> bool:
    """Tell whether a process that runs `preparation` can set the nice value of its session."""
    program = f"""
{preparation}
try:
    with open("/proc/self/autogroup", "w") as niceness:
        niceness.write("1")
except BlockingIOError:
    pass  # allowed, but not so soon after another
"""
    command = [sys.executable, "-ISc", program]
    process = subprocess.run(command, start_new_session=True, capture_output=True, check=False)
    return process.returncode == 0
