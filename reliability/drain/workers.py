"""Workers as an operator runs them, each on a disk of its own, ended by SIGTERM."""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from urllib.request import urlopen

from perdure.embedded.process import ChildProcess, request_status

GRACE = 40.0
"""Seconds that a worker has from SIGTERM to its exit."""

MAX_WAIT = 90.0
"""Seconds for a worker to get its share of the load."""

TOLERANCE = 1.5
"""Seconds beyond the grace in which the end of a process is noticed on a busy machine."""


@dataclass(frozen=True)
class Drain:
    """The end of a worker: its exit code, the seconds it took, and its steps at the SIGTERM."""

    code: int
    seconds: float
    at_work: int
    cut: int

    def describe_faults(self, fewest: int) -> list[str]:
        """Return what was wrong with it; `fewest` steps had to be at work."""
        return [
            *([f"a worker exited with {self.code}"] if self.code else []),
            *([f"a worker took {self.seconds:.1f} s"] if self.seconds > GRACE + TOLERANCE else []),
            *([f"only {self.at_work} steps were at work"] if self.at_work < fewest else []),
        ]


class Worker:
    """A worker process that is started again after each end."""

    def __init__(self, name: str, port: int, env: Mapping[str, str], folder: Path) -> None:
        self._log, self._port = folder / f"{name}.log", port
        self._env = {**env, "PERDURE_DATA": str(folder / name)}
        self._process: ChildProcess | None = None

    async def start(self) -> None:
        """Start the process, and wait until it is ready. Raises ProcessFailed."""
        options = ["--grace", f"{GRACE:g}", "--health-port", str(self._port)]
        command = [sys.executable, "-P", "-m", "perdure.worker", *options]
        self._process = await ChildProcess.start("worker", command, self._log, self._env)
        await self._process.wait_until(self.is_ready)

    async def is_ready(self) -> bool:
        return await request_status("GET", self._port, "/readyz") == 200

    async def wait_for_steps(self, count: int) -> None:
        """Wait until the worker has so many steps at work, as long as that may take."""
        with contextlib.suppress(TimeoutError):  # `describe_faults` says so
            async with asyncio.timeout(MAX_WAIT):
                while await asyncio.to_thread(self._count_steps) < count:
                    await asyncio.sleep(0.2)

    def _count_steps(self) -> int:
        with urlopen(f"http://127.0.0.1:{self._port}/readyz", timeout=10) as answer:
            return int(json.load(answer)["steps"])

    async def drain(self) -> Drain:
        """End the process by SIGTERM, and wait for it."""
        assert self._process is not None, "it was started"
        end, began = self._log.stat().st_size, monotonic()
        os.kill(self._process.pid, signal.SIGTERM)
        code = await self._process.wait()
        seconds = monotonic() - began
        text = self._log.read_bytes()[end:].decode(errors="replace")
        at_work, cut = _find(r"(\d+) steps at work", text), _find(r"cuts off (\d+) steps", text)
        return Drain(code, seconds, at_work, cut)

    async def stop(self) -> None:
        if self._process is not None:
            await self._process.stop(GRACE + TOLERANCE)


def _find(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found[1]) if found else 0
