"""Pid files, by which a process left over from a crash is found and ended."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from pydantic import BaseModel

from perdure.embedded.folder import write_private

PROCESS_POLL_INTERVAL = 0.02


class ProcessRecord(BaseModel):
    """A process; `started` distinguishes it from a later one with the same `pid`."""

    pid: int
    started: str


def write_pidfile(path: Path, pid: int) -> None:
    """Write into `path` that the child process `pid` runs."""
    started = _start_time(pid)
    if started is not None:
        write_private(path, ProcessRecord(pid=pid, started=started).model_dump_json())


async def end_predecessor(path: Path, grace: float = 5.0) -> None:
    """End the process that `path` names, if it still runs: SIGTERM, then SIGKILL."""
    record = _read(path)
    if record is None or not _is_running(record):
        return
    os.kill(record.pid, signal.SIGTERM)
    try:
        async with asyncio.timeout(grace):
            await _wait_gone(record)
    except TimeoutError:
        os.kill(record.pid, signal.SIGKILL)
        await _wait_gone(record)


async def _wait_gone(record: ProcessRecord) -> None:
    while _is_running(record):  # noqa: ASYNC110 - a process that is not our child cannot be awaited
        await asyncio.sleep(PROCESS_POLL_INTERVAL)


def _read(path: Path) -> ProcessRecord | None:
    return ProcessRecord.model_validate_json(path.read_bytes()) if path.exists() else None


def _is_running(record: ProcessRecord) -> bool:
    return _start_time(record.pid) == record.started


def _start_time(pid: int) -> str | None:
    """Return the start time of the process `pid`, or None if there is none."""
    return _start_time_from_proc(pid) if sys.platform == "linux" else _start_time_from_ps(pid)


def _start_time_from_proc(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name may contain spaces. After it: field 3 is the state, field 22 the ticks since boot.
    fields = stat.rpartition(")")[2].split()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return None if fields[0] == "Z" else f"{boot} {fields[19]}"


def _start_time_from_ps(pid: int) -> str | None:
    listing = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    english = {**os.environ, "LC_ALL": "C"}
    line = subprocess.run(listing, capture_output=True, text=True, env=english).stdout
    state, _, started = line.strip().partition(" ")
    return None if state.startswith("Z") or not started else started.strip()
