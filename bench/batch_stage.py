"""Where batches are measured: a server, a store of files, and a worker in a process of its own."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from client.batch import Batches
from client.batch_handle import BatchHandle
from client.client import Client
from client.connect import connect
from embedded.temporal import TemporalServer
from evaluation.spec import batch_of
from storage.files import FileStore

ROOT = Path(__file__).parents[1]

TOOL = "bench.tools:add"

STEPS: dict[str, Any] = {
    "answers": [
        {"tool_calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}]},
        {"tool_calls": [{"name": "add", "arguments": {"a": 3, "b": 4}}]},
        {"content": "The sum is 7."},
    ]
}
"""Three answers of a model: two steps with a tool, and the last word."""

WORD: dict[str, Any] = {"answers": [{"content": "The sum is 7."}]}
"""A single answer."""

SCRIPTS = {"steps": STEPS, "word": WORD}

NOTHING: Mapping[str, str] = {}

QUESTION = "What is 3 + 4? Add it up."


@dataclass(frozen=True)
class Spent:
    """Seconds of the clock, and of CPU: the worker's, Temporal's, and that of this process."""

    time: float
    worker: float
    temporal: float
    client: float

    def __sub__(self, other: "Spent") -> "Spent":
        return Spent(
            self.time - other.time,
            self.worker - other.worker,
            self.temporal - other.temporal,
            self.client - other.client,
        )


def cpu(pid: int) -> float:
    """Seconds of CPU that a process has used; source: proc(5), fields 14 and 15 of `stat`."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> int:
    """Resident bytes of a process; source: proc(5), field 24 of `stat`."""
    return int(_stat(pid)[21]) * os.sysconf("SC_PAGE_SIZE")


def _stat(pid: int) -> list[str]:
    """The fields behind the name, from the third on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


@dataclass(frozen=True)
class Stage:
    folder: Path
    client: Client
    temporal_pid: int
    worker_pid: int

    def spent(self) -> Spent:
        return Spent(
            time.perf_counter(),
            cpu(self.worker_pid),
            cpu(self.temporal_pid),
            cpu(os.getpid()),
        )

    def agent(self, script: str) -> dict[str, Any]:
        """The spec of an agent that plays this script."""
        return {
            "model": {"name": f"scripted:{self.folder / 'script.json'}#{script}"},
            "tools": [TOOL] if script == "steps" else [],
            "idle_timeout": 0.001,
        }

    async def batch(self, script: str, count: int, concurrency: int) -> BatchHandle:
        """A batch of that many samples, begun."""
        name = f"b{uuid.uuid4().hex[:12]}"
        rows = self.folder / f"{name}.jsonl"
        with rows.open("w") as out:
            for nth in range(count):
                row = {"id": f"s{nth}", "input": QUESTION, "target": "7"}
                out.write(json.dumps(row) + "\n")
        table = {
            "name": name,
            "dataset": str(rows),
            "agent": self.agent(script),
            "scorers": ["includes"],
            "concurrency": concurrency,
        }
        return await Batches.of(self.client).run(batch_of(table))


@contextlib.asynccontextmanager
async def staged(scripts: Mapping[str, Any] = SCRIPTS) -> AsyncIterator[Stage]:
    """Everything of its own, and gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as name:
        folder = Path(name)
        (folder / "script.json").write_text(json.dumps(scripts))
        server = await TemporalServer.start(folder / "temporal", ui=False)
        try:
            async with worker(folder, server.address) as pid:
                client = Client(await connect(server.address), FileStore(folder / "store"))
                yield Stage(folder, client, server.pid, pid)
        finally:
            await server.stop()


@contextlib.asynccontextmanager
async def worker(folder: Path, address: str) -> AsyncIterator[int]:
    """A worker's pid, once it polls."""
    log = folder / f"worker-{uuid.uuid4().hex}.log"
    process = begin([sys.executable, str(ROOT / "worker.py")], folder, address, log)
    try:
        await polls(process, log)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


async def polls(process: subprocess.Popen[bytes], log: Path) -> None:
    """Until the worker says in its log that it is there."""
    async with asyncio.timeout(120):
        while "polls" not in log.read_text():
            assert process.poll() is None, log.read_text()
            await asyncio.sleep(0.05)


def begin(
    command: Sequence[str], folder: Path, address: str, log: Path, more: Mapping[str, str] = NOTHING
) -> subprocess.Popen[bytes]:
    """Start a program of ours that works with this folder and this server."""
    environment = {
        "TEMPORAL_ADDRESS": address,
        "PERDURE_STORE": f"file://{folder / 'store'}",
        "PERDURE_DATA": str(folder),
        # As where it is installed: every workflow loads our code anew, and would compile it too.
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
    }
    with log.open("wb") as output:
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **environment, **more},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
