"""The samples in a batch, on a server, a worker and a command of their own."""

import asyncio
import contextlib
import json
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from bench.inspect_calls import CallFiles, Workload, count_calls, wait_for_half
from bench.processes import (
    cpu_seconds,
    local_stack,
    start_process,
    wait_until_polling,
    written_bytes,
)
from perdure.embedded.temporal import TemporalServer

WORKER = (sys.executable, "-m", "bench.inspect_worker")

PERDURE = str(Path(sys.executable).with_name("perdure"))

SPEC = """\
name = "{name}"
dataset = "{name}.jsonl"
scorers = ["includes"]
concurrency = {at_a_time}

[agent]
model = {{ name = "{model}" }}
tools = {tools}
"""


@dataclass
class PerdureSide:
    """`worker` is the one that runs, as long as nobody kills it."""

    folder: Path
    at_a_time: int
    server: TemporalServer
    worker: subprocess.Popen[bytes] | None = None

    @classmethod
    @contextlib.asynccontextmanager
    async def started(cls, folder: Path, at_a_time: int) -> AsyncIterator["PerdureSide"]:
        folder.mkdir(parents=True)
        server = await TemporalServer.start(folder / "temporal", ui=False)
        ours = cls(folder, at_a_time, server)
        try:
            await ours.start_worker()
            yield ours
        finally:
            ours.kill_worker()
            await server.stop()

    @property
    def files(self) -> CallFiles:
        return CallFiles(self.folder)

    async def start_worker(self) -> None:
        """Have a worker, once it polls."""
        log = self.folder / f"worker-{uuid.uuid4().hex}.log"
        self.worker = self._begin([*WORKER], log)
        await wait_until_polling(self.worker, log)

    def kill_worker(self) -> None:
        if self.worker is not None:
            self.worker.kill()
            self.worker.wait()
            self.worker = None

    async def measured(self, work: Workload) -> dict[str, float]:
        """CPU and bytes are the worker's and the server's: not those of the command, a client."""
        assert self.worker is not None
        pids, batch = (self.worker.pid, self.server.pid), self._batch(work)
        cpus, bytes_ = sum(map(cpu_seconds, pids)), sum(map(written_bytes, pids))
        began = time.perf_counter()
        await self._finish(batch)
        took = time.perf_counter() - began
        self.files.check(work, f"{batch}-")
        return {
            "time_s": took,
            "cpu_ms_a_call": 1000 * (sum(map(cpu_seconds, pids)) - cpus) / work.model_calls,
            "written_kb_a_call": (sum(map(written_bytes, pids)) - bytes_) / 1000 / work.model_calls,
        }

    async def killed(self, work: Workload) -> dict[str, float]:
        """Worker and command killed when half of the calls are made; then both started again."""
        batch = self._batch(work)
        command = self._command(batch)
        await wait_for_half(self.files.model, work, f"{batch}-")
        self.kill_worker()
        command.kill()
        command.wait()
        made, at = count_calls(self.files.model, f"{batch}-").total(), time.perf_counter()
        working = asyncio.create_task(self.start_worker())
        await self._finish(batch)
        took = time.perf_counter() - at
        await working
        repeats = self.files.compare(work, f"{batch}-")
        return {"calls_before": made, **repeats, "then_time_s": took}

    def _batch(self, work: Workload) -> str:
        """Write a batch of that many samples; its name."""
        name = f"b{uuid.uuid4().hex[:12]}"
        rows = (
            {"id": f"s{nth}", "input": f"{name}-s{nth}: What is 3 + 4?", "target": "7"}
            for nth in range(work.samples)
        )
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (self.folder / f"{name}.jsonl").write_text(text)
        spec = SPEC.format(
            name=name,
            at_a_time=self.at_a_time,
            model=f"ollama/counted-{work.tool_calls}",  # of a provider that needs no key
            tools=["bench.tools:note"] if work.tool_calls else [],
        )
        (self.folder / f"{name}.toml").write_text(spec)
        return name

    async def _finish(self, batch: str) -> None:
        """Run the batch, or go on with it, until it has ended."""
        code = await asyncio.to_thread(self._command(batch).wait)
        log = (self.folder / f"{batch}.log").read_text()
        assert code == 0, f"the batch ended with {code}: {log}"

    def _command(self, batch: str) -> subprocess.Popen[bytes]:
        file = str(self.folder / f"{batch}.toml")
        command = [PERDURE, "batch", "run", file, "-o", "json"]
        return self._begin(command, self.folder / f"{batch}.log")

    def _begin(self, command: list[str], log: Path) -> subprocess.Popen[bytes]:
        own = local_stack(self.folder, self.server.address)
        return start_process(command, log, own | self.files.environment)
