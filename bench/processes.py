"""The processes of a benchmark: their start, and their figures from the kernel."""

import asyncio
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]

QUIET_SHARE = 0.05
"""The share of a core below which a process has nothing to do."""


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used, to the nanosecond.

    The number of a process's CPU clock is that of clock_getcpuclockid(3), which Python lacks.
    """
    return time.clock_gettime((~pid << 3) | 2)


def memory_bytes(pid: int) -> int:
    """Return the resident memory of a process; source: proc(5), `stat` field 24."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[21]) * os.sysconf("SC_PAGE_SIZE")


def written_bytes(pid: int) -> int:
    """Return the bytes that a process has passed to `write`; source: proc(5), `io`."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["wchar"])


async def wait_until_polling(
    process: subprocess.Popen[bytes], log: Path, interval: float = 0.05
) -> None:
    """Wait until the worker logs that it polls, by a look at the log every `interval` seconds."""
    async with asyncio.timeout(120):
        while "polls" not in log.read_text():
            assert process.poll() is None, log.read_text()
            await asyncio.sleep(interval)


async def wait_until_quiet(pids: Sequence[int], interval: float = 0.5) -> None:
    """Wait until processes have no more work left from before, such as a library to import."""
    async with asyncio.timeout(120):
        used = sum(map(cpu_seconds, pids))
        while True:
            await asyncio.sleep(interval)
            before, used = used, sum(map(cpu_seconds, pids))
            if used - before < QUIET_SHARE * interval * len(pids):
                return


def measured_environment(own: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process that is measured, with variables of its own.

    Byte code is kept, as in an installation, whatever the shell says: a workflow loads its modules
    anew, and half of that would be compiling.
    """
    fixed = {"PYTHONDONTWRITEBYTECODE": "", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    return {**os.environ, **fixed, **own}


def start_process(
    command: Sequence[str], log: Path, own: Mapping[str, str], folder: Path = ROOT
) -> subprocess.Popen[bytes]:
    """Start a program whose output goes to `log`, with variables of its own."""
    environment = measured_environment(own)
    with log.open("wb") as output:
        return subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )


def local_stack(folder: Path, address: str) -> dict[str, str]:
    """Return the variables for a store of files in `folder` and Temporal at `address`."""
    return {
        "TEMPORAL_ADDRESS": address,
        "PERDURE_STORE": f"file://{folder / 'store'}",
        "PERDURE_DATA": str(folder),
    }
