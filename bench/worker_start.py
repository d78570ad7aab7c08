"""The cost of a new worker's start: `python -m bench.worker_start [--against FOLDER] [-o json]`.

CPU of all threads and resident memory of a worker process until it polls, until the conversation of
its first answer has ended, and until it has nothing more to do: what it puts off to a thread in the
background counts in the last one. The agent has tools of the catalog, and calls none. `module` is
`python -m perdure.worker`; `machine` is the same with an empty data folder, as on a new machine,
where it tests the store with races; `command` is `perdure worker`, which becomes the worker by
exec. The byte code is on the disk. Medians over rounds.
"""

import argparse
import contextlib
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from bench.command import add_against, add_shapes, make_parser, run_bench, shapes_of
from bench.figures import median_row
from bench.processes import (
    cpu_seconds,
    memory_bytes,
    start_process,
    wait_until_polling,
    wait_until_quiet,
)
from bench.rounds import BEFORE, Row, RunOnce, reorder, show_rows
from bench.servers import Servers, start_servers
from bench.shapes import PLAIN_TOOL, Shape
from bench.sides import Tree, scripts_for, start_client

MODULE = ("perdure.worker",)
WAYS = {"module": MODULE, "machine": MODULE, "command": ("perdure.cli.main", "worker")}
"""The modules that become a worker, and their arguments."""

DEFAULT_SHAPES = (Shape(), Shape(over_http=True))

TOOLS = (PLAIN_TOOL, "terminal", "file_editor", "finish")

LOG_INTERVAL = 0.002
"""Seconds between two looks at the log of a worker: what it does meanwhile counts as its start."""


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    async with start_servers(scripts_for(0)) as servers:
        runs: dict[str, RunOnce] = {
            f"{way} {shape.name}{BEFORE if tree.name == 'before' else ''}": partial(
                measure_start, servers, tree, way, shape
            )
            for way in options.ways
            for shape in shapes_of(options, DEFAULT_SHAPES)
            for tree in options.trees
        }
        rows: dict[str, list[Row]] = {name: [] for name in runs}
        for run in runs.values():
            await run()  # compiles
        for nth in range(options.rounds):
            for name, run in reorder(runs, nth):
                rows[name].append(await run())
            print(f"round {nth + 1} of {options.rounds} is done", file=sys.stderr, flush=True)
    medians = {name: median_row(each) for name, each in rows.items()}
    return {"rounds": options.rounds, "medians": medians, "rows": rows}


async def measure_start(servers: Servers, tree: Tree, way: str, shape: Shape) -> Row:
    """Start a worker, and have one conversation; return milliseconds and megabytes."""
    queue = f"{tree.name}{uuid.uuid4().hex[:4]}"
    variables = servers.environment(shape.on_s3) | tree.environment()
    variables |= {"PERDURE_TASK_QUEUE": queue}
    if way == "machine":
        variables |= {"PERDURE_DATA": str(servers.folder / queue)}
    job = {"agent": make_agent(servers, shape), "count": 1, "concurrency": 1}
    async with start_client(servers.folder, queue, variables) as client:
        assert await client.ask("origin") == str(tree.folder), "other modules were found first"
        began = time.perf_counter()
        async with _start_worker(servers, queue, way, variables) as worker:
            row = _note("polls", worker.pid, began)
            await client.ask("conversations", **job)
            row |= _note("answer", worker.pid, began)
            await wait_until_quiet([worker.pid])
            return row | _note("quiet", worker.pid, began)


def make_agent(servers: Servers, shape: Shape) -> dict[str, Any]:
    return shape.agent("steps-0", str(servers.scripts), servers.api_base, tools=TOOLS)


def _note(moment: str, pid: int, began: float) -> Row:
    return {
        f"{moment}_cpu_ms": 1000 * cpu_seconds(pid),
        f"{moment}_mb": memory_bytes(pid) / 1e6,
        f"{moment}_time_ms": 1000 * (time.perf_counter() - began),
    }


@contextlib.asynccontextmanager
async def _start_worker(
    servers: Servers, queue: str, way: str, variables: dict[str, str]
) -> AsyncIterator[subprocess.Popen[bytes]]:
    """Start a worker, and return when it polls."""
    log = servers.folder / f"{queue}.log"
    worker = start_process([sys.executable, "-m", *WAYS[way]], log, variables, servers.folder)
    try:
        await wait_until_polling(worker, log, LOG_INTERVAL)
        yield worker
    finally:
        worker.terminate()
        worker.wait()


def show(report: dict[str, Any]) -> None:
    print(f"{report['rounds']} rounds; from the start of the process to each moment")
    show_rows("a new worker", report["medians"])


def main() -> None:
    parser = make_parser("bench.worker_start", __doc__, rounds=5)
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    add_shapes(parser)
    add_against(parser)
    run_bench(parser, measure, show)


if __name__ == "__main__":
    main()
