"""The processes of a benchmark: their start, and their figures from /proc."""

import asyncio
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used; source: proc(5), `stat` fields 14 and 15."""
    fields = _stat_fields(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_bytes(pid: int) -> int:
    """Return the resident memory of a process; source: proc(5), `stat` field 24."""
    return int(_stat_fields(pid)[21]) * os.sysconf("SC_PAGE_SIZE")


def _stat_fields(pid: int) -> list[str]:
    """Return the fields behind the process's name, from the third on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def written_bytes(pid: int) -> int:
    """Return the bytes that a process has passed to `write`; source: proc(5), `io`."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["wchar"])


async def wait_until_polling(process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the worker logs that it polls."""
    async with asyncio.timeout(120):
        while "polls" not in log.read_text():
            assert process.poll() is None, log.read_text()
            await asyncio.sleep(0.05)


def start_process(
    command: Sequence[str],
    folder: Path,
    address: str,
    log: Path,
    more: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start one of our programs with its store in `folder` and the server at `address`."""
    environment = {
        "TEMPORAL_ADDRESS": address,
        "PERDURE_STORE": f"file://{folder / 'store'}",
        "PERDURE_DATA": str(folder),
        # Byte code is cached, as in an installation: every workflow loads our code again.
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
    }
    with log.open("wb") as output:
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **environment, **(more or {})},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
