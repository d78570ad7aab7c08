"""The time until a conversation continues after a SIGKILL: `python -m bench.recover [-o json]`.

One worker is in the middle of a turn and another waits; the one at work gets a SIGKILL, and the
clock runs until the next event is in the log. It is killed between two steps, right after an event,
which the time-out of Temporal's workflow task ends, and 0.1 to 0.4 s into a think, which the
heartbeat's ends; the think is then done again, and its answer takes half a second. Beside them, the
longest time between two events while nobody was killed.
"""

import argparse
import asyncio
import contextlib
import os
import statistics
import sys
import time
import uuid
from collections.abc import AsyncIterator
from subprocess import Popen
from typing import Any

from bench.command import at_least, make_parser, run_bench
from bench.model import steps_script
from bench.processes import start_process, wait_until_polling
from bench.servers import Servers, start_servers
from bench.shapes import PLAIN_TOOL
from perdure.agent.spec import Agent, ModelSpec
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.events.tools import ObservationEvent
from perdure.temporal.connect import connect

DELAY = 0.5
"""Seconds of an answer."""

MOMENTS = (0.1, 0.2, 0.3, 0.4)
"""Seconds into a think at which a worker is killed."""

QUIET_EVENTS = 10
"""Events to wait for before a kill, for the longest time between two."""


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    spec = Agent(model=ModelSpec(name="none"))
    timeouts = options.heartbeat_timeout or [spec.heartbeat_timeout]
    plan = [(timeout, moment) for timeout in timeouts for moment in (None, *MOMENTS)]
    kills = []
    async with start_servers({"slow": steps_script(500, DELAY)}) as servers:
        for nth in range(options.rounds):
            for timeout, moment in choose_kills(plan, nth):
                kills.append(await kill_worker(servers, timeout, moment))
            print(f"round {nth + 1} of {options.rounds} is done", file=sys.stderr, flush=True)
    return {
        "rounds": options.rounds,
        "load": os.getloadavg()[0],
        "medians": {f"{timeout:g}": report_kills(kills, timeout) for timeout in timeouts},
        "kills": kills,
    }


def choose_kills(
    plan: list[tuple[float, float | None]], nth: int
) -> list[tuple[float, float | None]]:
    """Return the kills of a round: one between steps and one in a think for each time-out."""
    moment = MOMENTS[nth % len(MOMENTS)]
    return [kill for kill in plan if kill[1] in (None, moment)]


def report_kills(kills: list[dict[str, Any]], timeout: float) -> dict[str, float]:
    rows = [kill for kill in kills if kill["heartbeat_timeout_s"] == timeout]
    between = [kill["recovery_s"] for kill in rows if kill["moment_s"] is None]
    within = [kill["recovery_s"] for kill in rows if kill["moment_s"] is not None]
    return {
        "between_steps_s": statistics.median(between),
        "between_steps_max_s": max(between),
        "in_a_think_s": statistics.median(within),
        "in_a_think_max_s": max(within),
        "undisturbed_gap_max_s": max(kill["undisturbed_gap_s"] for kill in rows),
    }


async def kill_worker(servers: Servers, timeout: float, moment: float | None) -> dict[str, Any]:
    """Kill a worker so many seconds into a think, or right after an event."""
    queue = f"recover-{uuid.uuid4()}"
    client = Client(
        await connect(servers.temporal.address), servers.store(on_s3=False), task_queue=queue
    )
    spec = Agent(
        model=ModelSpec(name=f"scripted:{servers.scripts}#slow"),
        tools=(PLAIN_TOOL,),
        heartbeat_timeout=timeout,
    )
    async with start_worker(servers, queue) as first:
        talk = await client.start("Add, again and again.", spec)
        await wait_for_events(talk, 6)
        async with start_worker(servers, queue) as second:
            gap = await find_longest_gap(talk, QUIET_EVENTS)
            busy = await find_busy_worker(talk, first, second)
            end = await wait_for_observation(talk)
            await asyncio.sleep(moment or 0)
            busy.kill()
            killed = time.perf_counter()
            await wait_for_events(talk, end + 1)
            recovery = time.perf_counter() - killed
            await talk.handle.terminate("measured")
    return {
        "heartbeat_timeout_s": timeout,
        "moment_s": moment,
        "recovery_s": recovery,
        "undisturbed_gap_s": gap,
    }


@contextlib.asynccontextmanager
async def start_worker(servers: Servers, queue: str) -> AsyncIterator[Popen[bytes]]:
    log = servers.folder / f"{uuid.uuid4()}.log"
    own = servers.environment(on_s3=False) | {"PERDURE_TASK_QUEUE": queue}
    worker = start_process([sys.executable, "-m", "perdure.worker"], log, own)
    try:
        await wait_until_polling(worker, log)
        yield worker
    finally:
        worker.kill()
        worker.wait()


async def find_busy_worker(talk: Conversation, *workers: Popen[bytes]) -> Popen[bytes]:
    """Return the worker that has the step which runs next."""
    async with asyncio.timeout(60):
        while True:
            description = await talk.handle.describe()
            for step in description.raw_description.pending_activities:
                pid = step.last_worker_identity.partition("@")[0]
                if busy := [worker for worker in workers if str(worker.pid) == pid]:
                    return busy[0]
            await asyncio.sleep(0.01)


async def wait_for_events(talk: Conversation, end: int) -> None:
    async with asyncio.timeout(120):
        while await talk.log.find(end - 1) is None:
            await asyncio.sleep(0.01)


async def wait_for_observation(talk: Conversation) -> int:
    """Wait for the next result of a tool: a think follows; return the end of the log."""
    end = await talk.log.end()
    while True:
        end += 1
        await wait_for_events(talk, end)
        if isinstance((await talk.log.get(end - 1)).event, ObservationEvent):
            return end


async def find_longest_gap(talk: Conversation, events: int) -> float:
    end, longest, last = await talk.log.end(), 0.0, time.perf_counter()
    for nth in range(1, events + 1):
        await wait_for_events(talk, end + nth)
        longest = max(longest, time.perf_counter() - last)
        last = time.perf_counter()
    return longest


def show(report: dict[str, Any]) -> None:
    print(f"{report['rounds']} kills of each kind at a load of {report['load']:.1f}")
    for timeout, row in report["medians"].items():
        print(f"heartbeat time-out {timeout} s")
        for name, value in row.items():
            print(f"    {name:24}{value:8.2f}")
    for kill in report["kills"]:
        moment = "between steps" if kill["moment_s"] is None else f"{kill['moment_s']} s in a think"
        timeout, recovery = kill["heartbeat_timeout_s"], kill["recovery_s"]
        print(f"heartbeat {timeout:g} s, {moment:20}{recovery:8.2f} s")


def main() -> None:
    parser = make_parser("bench.recover", __doc__, rounds=4)
    parser.add_argument(
        "--heartbeat-timeout",
        type=at_least(1),
        nargs="+",
        help="seconds of the agent's setting, instead of its default; several are run in turn",
    )
    run_bench(parser, measure, show)


if __name__ == "__main__":
    main()
