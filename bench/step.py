"""The cost of a step against the floor of the same run: `python -m bench.step [-o json]`.

A step is a think and an act: the model is asked and answers with one tool call, the tool runs. The
floor is a bare workflow with two activities that do nothing, on the same server, in turn with ours.
Figures are medians over rounds; only ratios of one run mean anything on a noisy machine.
"""

import argparse
import asyncio
import contextlib
import dataclasses
import itertools
import json
import statistics
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import temporalio.client
from temporalio.worker import Worker

from bench.cost import Cost, cost
from bench.floor import Floor, nothing
from bench.model import model_server
from perdure.activities.support.resources import Resources
from perdure.agent.policies import Limits
from perdure.agent.spec import Agent, ModelSpec
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.embedded.seaweed import Seaweed
from perdure.embedded.temporal import TemporalServer
from perdure.events.messages import MessageEvent
from perdure.events.tools import ObservationEvent
from perdure.models.router import ModelRouter
from perdure.storage.files import FileStore
from perdure.storage.s3 import S3Store
from perdure.storage.store import S3Access, Store
from perdure.temporal.connect import connect
from perdure.worker import build_worker

Handle: TypeAlias = temporalio.client.WorkflowHandle[Any, Any]

WARM_UP_STEPS = 10
"""Steps before the clock starts: what is loaded once is no step's cost."""


@dataclass(frozen=True)
class Bench:
    temporal: temporalio.client.Client
    temporal_pid: int
    seaweed: Seaweed
    folder: Path
    api_base: str


@dataclass(frozen=True)
class Run:
    """`size` is bytes and `events` the number of events of history a step."""

    spent: Cost
    size: float
    events: float

    def per_step(self, steps: int) -> dict[str, float]:
        """Milliseconds of wall time and CPU, and history."""
        return {
            "time_ms": 1000 * self.spent.time / steps,
            "cpu_ms": 1000 * self.spent.cpu / steps,
            "own_cpu_ms": 1000 * self.spent.own / steps,
            "temporal_cpu_ms": 1000 * self.spent.temporal / steps,
            "store_cpu_ms": 1000 * self.spent.store / steps,
            "history_bytes": self.size,
            "history_events": self.events,
        }


@contextlib.asynccontextmanager
async def bench_servers(*lengths: int) -> AsyncIterator[Bench]:
    """Servers of our own, and the scripted model over HTTP in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as name:
        folder = Path(name)
        server = await TemporalServer.start(folder / "temporal", ui=False)
        seaweed = await Seaweed.start(folder / "seaweed")
        await seaweed.make_bucket("bench")
        try:
            async with model_server(folder, *lengths) as api_base:
                client = await connect(server.address)
                yield Bench(client, server.pid, seaweed, folder, api_base)
        finally:
            await seaweed.stop()
            await server.stop()


async def run_floor(bench: Bench, steps: int) -> Run:
    queue = f"floor-{uuid.uuid4()}"
    async with Worker(bench.temporal, task_queue=queue, workflows=[Floor], activities=[nothing]):
        await _floor(bench, queue, WARM_UP_STEPS)
        before = cost(bench.temporal_pid)
        handle = await _floor(bench, queue, steps)
        spent = cost(bench.temporal_pid) - before
    size, events = await _history(handle)
    return Run(spent, size / steps, events / steps)


async def _floor(bench: Bench, queue: str, steps: int) -> Handle:
    handle = await bench.temporal.start_workflow(
        Floor.run, steps, id=f"floor-{uuid.uuid4()}", task_queue=queue
    )
    await handle.result()
    return handle


@dataclass(frozen=True)
class Shape:
    """A way to run the benchmark: a store, and a way to the model."""

    name: str
    on_s3: bool = False
    over_http: bool = False

    def store(self, bench: Bench) -> Store:
        if not self.on_s3:
            return FileStore(bench.folder / "store")
        keys = bench.seaweed.access_key, bench.seaweed.secret_key
        return S3Store("bench", "", S3Access(bench.seaweed.endpoint, *keys, "us-east-1"))

    def model(self, bench: Bench, steps: int) -> ModelSpec:
        if self.over_http:
            return ModelSpec(name=f"openai/steps-{steps}", api_base=bench.api_base)
        return ModelSpec(name=f"scripted:{bench.folder / 'script.json'}#steps-{steps}")


async def run_conversation(bench: Bench, shape: Shape, steps: int) -> tuple[Run, Conversation]:
    """A conversation of `steps` steps, after a short one that warms the worker up."""
    store = shape.store(bench)
    client = Client(bench.temporal, store, task_queue=f"ours-{uuid.uuid4()}")
    stores = [bench.seaweed.pid] if shape.on_s3 else []
    world = Resources(store, ModelRouter(), bench.folder / "workspaces")
    async with build_worker(bench.temporal, client.task_queue, world):
        await _ours(client, shape.model(bench, WARM_UP_STEPS))
        before, began = cost(bench.temporal_pid, stores), datetime.now(UTC)
        talk = await _ours(client, shape.model(bench, steps))
        spent = cost(bench.temporal_pid, stores) - before
        took = await _answered(talk) - began
        spent = dataclasses.replace(spent, time=took.total_seconds())
    size, events = await _history(talk.handle)
    await store.close()
    return Run(spent, size / steps, events / steps), talk


async def _ours(client: Client, model: ModelSpec) -> Conversation:
    spec = Agent(
        model=model,
        tools=("bench.tools:add",),
        limits=Limits(max_iterations=100_000),
        idle_timeout=0.001,
    )
    talk = await client.start("Add, again and again.", spec)
    # The result, not a tail of the log: looking at the log would cost what is being measured.
    outcome = await talk.handle.result()
    assert outcome.status == "finished", outcome.reason
    return talk


async def _answered(talk: Conversation) -> datetime:
    """When the turn was over, by the log: the workflow stays for a while, at no cost."""
    [last] = await talk.log.read_newest(1)
    assert isinstance(last.event, MessageEvent), "the agent has the last word"
    return datetime.fromisoformat(last.event.timestamp).replace(tzinfo=UTC)


async def _history(handle: Handle) -> tuple[int, int]:
    """Bytes and events of the history of the handle's newest run."""
    info = (await handle.describe()).raw_description.workflow_execution_info
    return info.history_size_bytes, info.history_length


async def measure_drift(bench: Bench, shape: Shape, steps: int) -> float:
    """Compare a step in the last tenth of a conversation with one in the first.

    Medians of the time between two observations, by the log's own timestamps.
    """
    _, talk = await run_conversation(bench, shape, steps)
    log = Client(bench.temporal, shape.store(bench)).conversation(talk.id).log
    entries = await log.read(0, await log.end())
    at = [
        datetime.fromisoformat(entry.event.timestamp)
        for entry in entries
        if isinstance(entry.event, ObservationEvent)
    ]
    took = [(later - earlier).total_seconds() for earlier, later in itertools.pairwise(at)]
    tenth = len(took) // 10
    return statistics.median(took[-tenth:]) / statistics.median(took[:tenth])


SHAPES = (
    Shape("files"),
    Shape("s3", on_s3=True),
    Shape("files, http", over_http=True),
    Shape("s3, http", on_s3=True, over_http=True),
)


async def measure(rounds: int, steps: int, long: int) -> dict[str, Any]:
    async with bench_servers(steps, long) as bench:
        runs: dict[str, list[Run]] = {"floor": [], **{shape.name: [] for shape in SHAPES}}
        for _ in range(rounds):
            runs["floor"].append(await run_floor(bench, steps))
            for shape in SHAPES:
                runs[shape.name].append((await run_conversation(bench, shape, steps))[0])
        drifts = {shape.name: await measure_drift(bench, shape, long) for shape in SHAPES[:2]}
    report = {name: _median(each, steps) for name, each in runs.items()}
    return {
        "time_ratio": _ratio(runs, "files", lambda run: run.spent.time),
        "cpu_ratio": _ratio(runs, "files", lambda run: run.spent.cpu),
        "drift": drifts["files"],
        "drift_s3": drifts["s3"],
        "steps": steps,
        "rounds": rounds,
        "per_step": report,
    }


def _median(runs: list[Run], steps: int) -> dict[str, float]:
    rows = [run.per_step(steps) for run in runs]
    return {name: statistics.median(row[name] for row in rows) for name in rows[0]}


def _ratio(runs: dict[str, list[Run]], name: str, figure: Callable[[Run], float]) -> float:
    """The median over the rounds of ours against the floor of the same round."""
    pairs = zip(runs[name], runs["floor"], strict=True)
    return statistics.median(figure(mine) / figure(bare) for mine, bare in pairs)


def show(report: dict[str, Any]) -> None:
    print(f"{report['rounds']} rounds of {report['steps']} steps; a step is a think and an act")
    columns = list(report["per_step"]["floor"])
    print(f"{'':12}" + "".join(f"{name:>18}" for name in columns))
    for name, row in report["per_step"].items():
        print(f"{name:12}" + "".join(f"{row[column]:18.2f}" for column in columns))
    for name in ("time_ratio", "cpu_ratio", "drift", "drift_s3"):
        print(f"{name:12}{report[name]:18.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.step", description=__doc__)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--long", type=int, default=500)
    options = parser.parse_args()
    report = asyncio.run(measure(options.rounds, options.steps, options.long))
    if options.output == "json":
        json.dump(report, sys.stdout, indent=2)
    else:
        show(report)


if __name__ == "__main__":
    main()
