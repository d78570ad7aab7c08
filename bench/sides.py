"""The sides of a comparison: worker processes and a client process of one checkout."""

import asyncio
import contextlib
import json
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.cost import Cost, Pids, Samples, sample_costs
from bench.floor import ACTIVITIES_PER_STEP, TASK_TIMEOUT
from bench.model import steps_scripts
from bench.processes import (
    ROOT,
    measured_environment,
    start_process,
    wait_until_polling,
    wait_until_quiet,
)
from bench.servers import Servers
from bench.shapes import Shape

WARM_UP_STEPS = 10
"""Steps before the clock starts: what is loaded once is no step's cost."""

TIMER_SECONDS = 2.5
"""Seconds after a run in which Temporal's timers for it fire: they have time-outs of 2 s."""

MAX_LINE = 64 * 1024 * 1024
"""Bytes of the longest answer of a client."""


def scripts_for(*lengths: int) -> dict[str, Any]:
    """Return the scripts of conversations of these lengths, and of the warm-up."""
    return steps_scripts(*{WARM_UP_STEPS, *lengths})


@dataclass(frozen=True)
class Tree:
    """A checkout that is measured. Its modules are found first; our benches come from here.

    `variables` are further ones of its workers and clients.
    """

    name: str = "now"
    folder: Path = ROOT
    variables: tuple[tuple[str, str], ...] = ()

    def environment(self) -> dict[str, str]:
        return {"PYTHONPATH": str(self.folder), **dict(self.variables)}


def choose_trees(against: Path | None) -> list[Tree]:
    """Return this checkout, after the one to compare with if there is one. Raises ValueError."""
    if against is None:
        return [Tree()]
    if not (against / "perdure" / "worker.py").exists():
        raise ValueError(f"{against} is no checkout: it has no perdure/worker.py.")
    return [Tree("before", against.resolve()), Tree()]


@dataclass(frozen=True)
class BenchClient:
    """A process of `bench.client`."""

    process: asyncio.subprocess.Process
    log: Path

    async def ask(self, job: str, **arguments: Any) -> Any:
        """Have a job done. Raises RuntimeError with what the process printed if it ended."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps({"job": job, **arguments}).encode() + b"\n")
        await stdin.drain()
        if not (line := await stdout.readline()):
            raise RuntimeError(f"The client of the bench ended: {self.log.read_text()}")
        return json.loads(line)


@dataclass(frozen=True)
class Run:
    """A run of some conversations: its cost, their times, and the samples taken meanwhile."""

    cost: Cost
    conversations: list[dict[str, Any]] = field(repr=False)
    samples: Samples = field(repr=False)

    @property
    def duration(self) -> float:
        """Seconds from the first start to the last answer; a workflow stays on for a while."""
        began = min(item["began"] for item in self.conversations)
        return float(max(item["answered"] for item in self.conversations) - began)

    def step_times(self) -> list[float]:
        """Return the seconds of each step but the first of each conversation."""
        return [
            late - early
            for item in self.conversations
            for early, late in zip(item["steps"], item["steps"][1:], strict=False)
        ]

    def per(self, count: int) -> dict[str, float]:
        """Return milliseconds for each of `count` steps or conversations."""
        return self.cost.per(count) | {"time_ms": 1000 * self.duration / count}


@dataclass(frozen=True)
class Side:
    """Workers on a queue of their own, and their client."""

    servers: Servers
    queue: str
    workers: Sequence[subprocess.Popen[bytes]]
    client: BenchClient
    on_s3: bool = False

    @property
    def pids(self) -> Pids:
        workers = tuple(worker.pid for worker in self.workers)
        store = self.servers.store_pid(self.on_s3)
        return Pids(workers, self.servers.temporal.pid, store, self.client.process.pid)

    async def run(
        self, shape: Shape, steps: int, count: int = 1, concurrency: int = 1, **fields: Any
    ) -> Run:
        """Run conversations of so many steps; `fields` are the agent's."""
        agent = shape.agent(
            f"steps-{steps}", str(self.servers.scripts), self.servers.api_base, **fields
        )
        job = {"agent": agent, "count": count, "concurrency": concurrency}
        return await self._measure("conversations", "read_conversations", job)

    async def run_floor(self, activities: int, count: int = 1, concurrency: int = 1) -> Run:
        """Run bare workflows of so many activities."""
        timeout = TASK_TIMEOUT.total_seconds()
        job = {"queue": self.queue, "activities": activities, "task_timeout": timeout}
        job |= {"count": count, "concurrency": concurrency}
        return await self._measure("floors", "read_floors", job)

    async def _measure(self, job: str, read: str, arguments: dict[str, Any]) -> Run:
        pids = self.pids
        before = pids.cost()
        async with sample_costs(pids) as samples:
            conversations = await self.client.ask(job, **arguments)
        seconds = time.time() - before.time
        await asyncio.sleep(TIMER_SECONDS)
        cost = replace(pids.cost() - before, time=seconds)
        times = await self.client.ask(read, ids=[item["id"] for item in conversations])
        merged = [item | its for item, its in zip(conversations, times, strict=True)]
        return Run(cost, merged, samples)


@contextlib.asynccontextmanager
async def start_side(
    servers: Servers, tree: Tree, on_s3: bool = False, workers: int = 1
) -> AsyncIterator[Side]:
    """Start workers as they are deployed, and warm them up."""
    async with _start(servers, tree, "perdure.worker", on_s3, workers) as side:
        for shape in (Shape(on_s3), Shape(on_s3, over_http=True)):
            await side.run(shape, WARM_UP_STEPS, 4 * workers, 4 * workers)
        await wait_until_quiet(side.pids.workers)
        yield side


@contextlib.asynccontextmanager
async def start_floor(servers: Servers, workers: int = 1) -> AsyncIterator[Side]:
    """Start the floor's workers, and warm them up."""
    async with _start(servers, Tree("floor"), "bench.floor", False, workers) as side:
        await side.run_floor(ACTIVITIES_PER_STEP * WARM_UP_STEPS, 4 * workers, 4 * workers)
        await wait_until_quiet(side.pids.workers)
        yield side


@contextlib.asynccontextmanager
async def _start(
    servers: Servers, tree: Tree, module: str, on_s3: bool, workers: int
) -> AsyncIterator[Side]:
    # About as long as the default, `perdure`: it stands in the history of every step.
    queue = f"{tree.name}{uuid.uuid4().hex[:4]}"
    variables = servers.environment(on_s3) | tree.environment() | {"PERDURE_TASK_QUEUE": queue}
    command = [sys.executable, "-m", module]
    logs = [servers.folder / f"{queue}-{nth}.log" for nth in range(workers)]
    processes = [start_process(command, log, variables, servers.folder) for log in logs]
    try:
        for process, log in zip(processes, logs, strict=True):
            await wait_until_polling(process, log)
        async with start_client(servers.folder, queue, variables) as client:
            assert await client.ask("origin") == str(tree.folder), "other modules were found first"
            yield Side(servers, queue, processes, client, on_s3)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


@contextlib.asynccontextmanager
async def start_client(
    folder: Path, queue: str, variables: dict[str, str]
) -> AsyncIterator[BenchClient]:
    log = folder / f"{queue}-client.log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bench.client"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            cwd=folder,
            env=measured_environment(variables),
            limit=MAX_LINE,
        )
    try:
        yield BenchClient(process, log)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
