"""A user with many conversations beside users with one each: `python -m bench.fairness [-o json]`.

The others' conversations run alone first. Then one user starts many, and once these are at work the
others start theirs again: each user has the same share of the worker. For comparison, as many
conversations of that user's start in the same moment: they have no share of their own.
"""

import argparse
import asyncio
import contextlib
import sys
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from typing import Any

import temporalio.client

from bench.command import at_least, make_parser, run_bench
from bench.figures import percentile
from bench.processes import start_process, wait_until_polling
from bench.servers import Servers, start_servers
from bench.shapes import Shape
from bench.sides import WARM_UP_STEPS, scripts_for
from perdure import Agent
from perdure.client.client import Client
from perdure.temporal.connect import connect

GREEDY = "greedy"

TASK = "Add, again and again."


class Bench:
    """A worker, and clients of its users."""

    def __init__(self, servers: Servers, queue: str, temporal: temporalio.client.Client) -> None:
        self._servers = servers
        self._queue = queue
        self._temporal = temporal
        self._store = servers.store(on_s3=False)

    def agent(self, steps: int) -> Agent:
        script, file = f"steps-{steps}", str(self._servers.scripts)
        return Agent.model_validate(Shape().agent(script, file, self._servers.api_base))

    async def run(self, user_ids: Sequence[str], agent: Agent) -> list[float]:
        """Run a conversation of each user; return the seconds that each took."""
        return await asyncio.gather(*(self._run_one(user_id, agent) for user_id in user_ids))

    async def _run_one(self, user_id: str, agent: Agent) -> float:
        client = Client(self._temporal, self._store, user_id=user_id, task_queue=self._queue)
        began = time.perf_counter()
        outcome = await (await client.start(TASK, agent)).handle.result()
        assert outcome.status == "finished", outcome
        return time.perf_counter() - began


@contextlib.asynccontextmanager
async def start_worker(servers: Servers) -> AsyncIterator[str]:
    """Start a worker as it is deployed, and yield its queue."""
    queue, log = f"fair-{uuid.uuid4().hex[:8]}", servers.folder / "worker.log"
    variables = servers.environment(on_s3=False) | {"PERDURE_TASK_QUEUE": queue}
    command = [sys.executable, "-m", "perdure.worker"]
    process = start_process(command, log, variables, servers.folder)
    try:
        await wait_until_polling(process, log)
        yield queue
    finally:
        process.terminate()
        process.wait()


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    others = [f"user-{number}" for number in range(options.others)]
    async with start_servers(scripts_for(options.steps)) as servers, start_worker(servers) as queue:
        temporal = await connect(servers.temporal.address)
        bench = Bench(servers, queue, temporal)
        await bench.run(others, bench.agent(WARM_UP_STEPS))
        rounds = [await measure_round(bench, others, options) for _ in range(options.rounds)]
    return {"steps": options.steps, "conversations": options.conversations, "rounds": rounds}


async def measure_round(
    bench: Bench, others: Sequence[str], options: argparse.Namespace
) -> dict[str, float]:
    agent = bench.agent(options.steps)
    alone = await bench.run(others, agent)
    many = asyncio.create_task(bench.run([GREEDY] * options.conversations, agent))
    await asyncio.sleep(options.pause)
    more = asyncio.create_task(bench.run([GREEDY] * len(others), agent))
    beside = await bench.run(others, agent)
    assert not many.done(), "more conversations are needed: the others were alone in the end"
    same, _ = await asyncio.gather(more, many)
    times = {"alone_s": alone, "beside_s": beside, "same_user_s": same}
    row = {name: percentile(figures, 0.95) for name, figures in times.items()}
    return row | {"ratio": row["beside_s"] / row["alone_s"]}


def show(report: dict[str, Any]) -> None:
    print(
        f"A user has {report['conversations']} conversations of {report['steps']} steps at work.\n"
        "p95 of the conversations of users with one each, in seconds:"
    )
    print(f"{'alone':>8} {'beside':>8} {'ratio':>6}   {'more of the same user':>21}")
    for row in report["rounds"]:
        print(
            f"{row['alone_s']:8.2f} {row['beside_s']:8.2f} {row['ratio']:6.2f}"
            f"   {row['same_user_s']:21.2f}"
        )


def main() -> None:
    parser = make_parser("bench.fairness", __doc__, rounds=3)
    parser.add_argument("--conversations", type=at_least(1), default=500, help="of one user")
    parser.add_argument("--others", type=at_least(1), default=20, help="users with one each")
    parser.add_argument("--steps", type=at_least(2), default=20, help="of each conversation")
    parser.add_argument("--pause", type=at_least(1), default=10, help="seconds before the others")
    run_bench(parser, measure, show)


if __name__ == "__main__":
    main()
