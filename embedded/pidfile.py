"""Which process of ours runs in a folder, so that one left over from a crash is found and ended."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from pydantic import BaseModel

from embedded.files import write_private

POLL = 0.02


class Running(BaseModel):
    """A process: `started` tells it from a later one that was given the same `pid`."""

    pid: int
    started: str


def record(path: Path, pid: int) -> None:
    """Notes in `path` that `pid`, a child of ours, runs."""
    started = _started(pid)
    if started is not None:
        write_private(path, Running(pid=pid, started=started).model_dump_json())


async def end_predecessor(path: Path, grace: float = 5.0) -> None:
    """Ends the process that `path` notes, if it is still that one: SIGTERM, then SIGKILL."""
    running = _read(path)
    if running is None or not _is_there(running):
        return
    os.kill(running.pid, signal.SIGTERM)
    try:
        async with asyncio.timeout(grace):
            await _gone(running)
    except TimeoutError:
        os.kill(running.pid, signal.SIGKILL)
        await _gone(running)


async def _gone(running: Running) -> None:
    while _is_there(running):  # noqa: ASYNC110 - nobody tells us of a process not our child
        await asyncio.sleep(POLL)


def _read(path: Path) -> Running | None:
    return Running.model_validate_json(path.read_bytes()) if path.exists() else None


def _is_there(running: Running) -> bool:
    return _started(running.pid) == running.started


def _started(pid: int) -> str | None:
    """When the process `pid` was started, or None where none runs. Two never share both."""
    return _started_by_proc(pid) if sys.platform == "linux" else _started_by_ps(pid)


def _started_by_proc(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # After a name that may hold spaces: the third field is the state, the 22nd ticks since boot.
    fields = stat.rpartition(")")[2].split()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return None if fields[0] == "Z" else f"{boot} {fields[19]}"


def _started_by_ps(pid: int) -> str | None:
    listing = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    english = {**os.environ, "LC_ALL": "C"}
    line = subprocess.run(listing, capture_output=True, text=True, env=english).stdout
    state, _, started = line.strip().partition(" ")
    return None if state.startswith("Z") or not started else started.strip()
