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

from bench.inspect_calls import count_calls, count_repeats, wait_for_half
from bench.processes import cpu_seconds, start_process, wait_until_polling, written_bytes
from perdure.embedded.temporal import TemporalServer

WORKER = (sys.executable, "-m", "bench.inspect_worker")

PERDURE = str(Path(sys.executable).with_name("perdure"))

SPEC = """\
name = "{name}"
dataset = "{name}.jsonl"
scorers = ["includes"]
concurrency = {at_a_time}

[agent]
model = {{ name = "counted" }}
tools = []
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
            await ours.work()
            yield ours
        finally:
            ours.kill_worker()
            await server.stop()

    @property
    def calls(self) -> Path:
        return self.folder / "calls"

    async def work(self) -> None:
        """Have a worker, once it polls."""
        log = self._log("worker")
        self.worker = self._begin([*WORKER], log)
        await wait_until_polling(self.worker, log)

    def kill_worker(self) -> None:
        if self.worker is not None:
            self.worker.kill()
            self.worker.wait()
            self.worker = None

    async def measured(self, samples: int) -> dict[str, float]:
        """CPU and bytes are the worker's and the server's: not those of the command, a client."""
        assert self.worker is not None
        pids, batch = (self.worker.pid, self.server.pid), self._batch(samples)
        cpus, bytes_ = sum(map(cpu_seconds, pids)), sum(map(written_bytes, pids))
        began = time.perf_counter()
        await _ended(self._command(batch), samples)
        took = time.perf_counter() - began
        assert len(count_calls(self.calls, f"{batch}-")) == samples
        return {
            "time_s": took,
            "cpu_ms_a_call": 1000 * (sum(map(cpu_seconds, pids)) - cpus) / samples,
            "written_kb_a_call": (sum(map(written_bytes, pids)) - bytes_) / 1000 / samples,
        }

    async def killed(self, samples: int) -> dict[str, float]:
        """Worker and command killed when half of the calls are made; then both started again."""
        batch = self._batch(samples)
        command = self._command(batch)
        await wait_for_half(self.calls, samples, f"{batch}-")
        self.kill_worker()
        command.kill()
        command.wait()
        made, at = len(count_calls(self.calls, f"{batch}-")), time.perf_counter()
        working = asyncio.create_task(self.work())
        await _ended(self._command(batch), samples)
        took = time.perf_counter() - at
        await working
        return {"calls_before": made, **count_repeats(self.calls, f"{batch}-"), "then_time_s": took}

    def _batch(self, samples: int) -> str:
        """Write a batch of that many samples; its name."""
        name = f"b{uuid.uuid4().hex[:12]}"
        rows = (
            {"id": f"s{nth}", "input": f"{name}-s{nth}: What is 3 + 4?", "target": "7"}
            for nth in range(samples)
        )
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (self.folder / f"{name}.jsonl").write_text(text)
        spec = SPEC.format(name=name, at_a_time=self.at_a_time)
        (self.folder / f"{name}.toml").write_text(spec)
        return name

    def _command(self, batch: str) -> subprocess.Popen[bytes]:
        file = str(self.folder / f"{batch}.toml")
        return self._begin([PERDURE, "batch", "run", file, "-o", "json"], self._log("command"))

    def _begin(self, command: list[str], log: Path) -> subprocess.Popen[bytes]:
        own = {"CALLS": str(self.calls)}
        return start_process(command, self.folder, self.server.address, log, own)

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}-{uuid.uuid4().hex}.log"


async def _ended(command: subprocess.Popen[bytes], samples: int) -> None:
    code = await asyncio.to_thread(command.wait)
    assert code == 0, f"the batch of {samples} ended with {code}: see the log of its command"
