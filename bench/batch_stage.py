"""The environment of batch benchmarks: a server, a file store, and a worker process."""

import contextlib
import json
import os
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.cost import Cost, Pids
from bench.processes import local_stack, start_process, wait_until_polling
from perdure.client.batch.batches import Batches
from perdure.client.batch.handle import BatchHandle
from perdure.client.client import Client
from perdure.embedded.temporal import TemporalServer
from perdure.evaluation.spec import parse_batch
from perdure.storage.files import FileStore
from perdure.temporal.connect import connect

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

QUESTION = "What is 3 + 4? Add it up."


@dataclass(frozen=True)
class BatchEnvironment:
    folder: Path
    client: Client
    temporal_pid: int
    worker_pid: int

    def cost(self) -> Cost:
        """Return the cost up to now; the client is this process."""
        return Pids((self.worker_pid,), self.temporal_pid, None, os.getpid()).cost()

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
        return await Batches.from_client(self.client).run(parse_batch(table))


@contextlib.asynccontextmanager
async def batch_environment(
    scripts: Mapping[str, Any] = SCRIPTS,
) -> AsyncIterator[BatchEnvironment]:
    """Everything of its own, and gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as name:
        folder = Path(name)
        (folder / "script.json").write_text(json.dumps(scripts))
        server = await TemporalServer.start(folder / "temporal", ui=False)
        try:
            async with start_worker(folder, server.address) as pid:
                client = Client(await connect(server.address), FileStore(folder / "store"))
                yield BatchEnvironment(folder, client, server.pid, pid)
        finally:
            await server.stop()


@contextlib.asynccontextmanager
async def start_worker(folder: Path, address: str) -> AsyncIterator[int]:
    """A worker's pid, once it polls."""
    log = folder / f"worker-{uuid.uuid4().hex}.log"
    command = [sys.executable, "-m", "perdure.worker"]
    process = start_process(command, log, local_stack(folder, address))
    try:
        await wait_until_polling(process, log)
        yield process.pid
    finally:
        process.terminate()
        process.wait()
