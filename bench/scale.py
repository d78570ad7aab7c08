"""`python -m bench.scale`: many conversations at rest and some at work, on one machine's Temporal.

One user's conversations at rest have their workflows open. Beside them other users' work, with a
model that takes some seconds an answer. Then: the memory of workers, gateway and servers, and the
cores that each uses; how soon a conversation at rest answers a message, and how long `perdure ls`
and the gateway's list take; the steps of those at work, and the histories of some.
"""

import argparse
import asyncio
import contextlib
import os
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4

import httpx

from bench.command import Report, at_least, make_parser, run_bench
from bench.false_alarms import count_timeouts
from bench.model import steps_script
from bench.processes import cpu_seconds, memory_bytes
from bench.servers import Servers, start_servers
from perdure.agent.policies import Limits
from perdure.agent.spec import Agent, ModelSpec
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.embedded.ports import choose_ports
from perdure.embedded.process import ChildProcess, request_status
from perdure.storage.credentials.api_keys import create_api_key
from perdure.temporal.connect import connect
from perdure.temporal.timeouts import HEARTBEAT_TIMEOUT

STARTS_AT_ONCE = 16
ANSWER_SECONDS = 3.0
"""Seconds of an answer of those at work, by default: 500 then ask for more than two cores give."""

HEARTBEAT_SECONDS = HEARTBEAT_TIMEOUT.total_seconds()
"""The heartbeat timeout of all agents, by default that of any agent."""

ENDLESS = 10_000
"""Steps of those at work: more than they come to."""

A_DAY = 86_400.0

PER_USER = 5
"""Conversations at work of a user."""

EXAMPLES = 25
"""Conversations of each kind whose steps and histories are counted."""

FIRST_STEPS = 2
"""Steps that each example has taken before those at work are measured: the first cost more."""

MAX_WARM_UP = 600.0
"""Seconds after which they are measured in any case."""

WARM_UP_INTERVAL = 5.0
"""Seconds between two looks at an example that has not taken them."""

WORK_SECONDS = 30.0
"""Time in which those at work are left alone, and their steps are counted."""

SAMPLES = 20
"""Messages, and looks at each list, that are timed."""

MAX_SECONDS = 60.0
"""Time of each after which fewer will do."""

UNLIMITED = {
    "PERDURE_GATEWAY_RATES": '{"read": 1000000, "write": 1000000}',
    "PERDURE_MODEL": "scripted:none",
}


@dataclass
class Stage:
    """The servers, and the processes whose memory is read."""

    client: Client
    servers: Servers
    env: dict[str, str]
    gateway: str
    key: str
    pids: dict[str, int]
    heartbeat_timeout: float

    def agent(self, script: str) -> Agent:
        """Return an agent that asks the scripted model over HTTP, and rests for a day."""
        return Agent(
            model=ModelSpec(name=f"openai/{script}", api_base=self.servers.api_base),
            tools=("bench.tools:add",),
            limits=Limits(max_iterations=10**6),
            idle_timeout=A_DAY,
            finished_timeout=A_DAY,
            heartbeat_timeout=self.heartbeat_timeout,
        )

    def user(self, user_id: str) -> Client:
        return Client(self.client.temporal, self.client.store, user_id)

    def memory(self) -> dict[str, float]:
        """Return the megabytes of each process."""
        return {name: round(memory_bytes(pid) / 1e6, 1) for name, pid in self.pids.items()}

    def cpu(self) -> dict[str, float]:
        """Return the seconds of CPU time that each process has used."""
        return {name: cpu_seconds(pid) for name, pid in self.pids.items()}


@asynccontextmanager
async def open_stage(options: argparse.Namespace) -> AsyncIterator[Stage]:
    """Start servers, workers and a gateway, with their priorities in `perdure dev`.

    Raises ProcessFailed.
    """
    scripts = {"rest": steps_script(0), "work": steps_script(ENDLESS, options.answer_seconds)}
    scripts["rest"]["repeat"] = True
    async with AsyncExitStack() as ending:
        servers = await ending.enter_async_context(start_servers(scripts, low_priority=True))
        env = {**os.environ, **servers.environment(on_s3=True), **UNLIMITED, "OPENAI_API_KEY": "-"}
        names = [f"worker {nth + 1}" for nth in range(options.workers)]
        ports = choose_ports(servers.folder / "scale.json", [*names, "gateway"])
        pids = {"temporal": servers.temporal.pid, "store": servers.seaweed.pid}

        async def start(
            name: str, module: str, path: str, *options: str, low_priority: bool = False
        ) -> None:
            log, port = servers.folder / f"{name.replace(' ', '-')}.log", ports[name]
            command = [sys.executable, "-P", "-m", module, *options, str(port)]
            child = await ChildProcess.start(name, command, log, env, servers.folder, low_priority)
            ending.push_async_callback(child.stop, 15.0)
            await child.wait_until(lambda: is_ready(port, path), 120)
            pids[name] = child.pid

        for name in names:
            await start(name, "perdure.worker", "/readyz", "--health-port", low_priority=True)
        await start("gateway", "perdure.gateway", "/ready", "--host", "127.0.0.1", "--port")
        client = Client(await connect(servers.temporal.address), servers.store(on_s3=True))
        key = (await create_api_key(client.store, "local", "bench", ("read", "write"))).secret
        address = f"http://127.0.0.1:{ports['gateway']}"
        yield Stage(client, servers, env, address, key, pids, options.heartbeat_timeout)


async def is_ready(port: int, path: str) -> bool:
    return await request_status("GET", port, path) == 200


def tell(news: object) -> None:
    print(news, file=sys.stderr, flush=True)


async def start_all(
    count: int, start: Callable[[int], Awaitable[Conversation]]
) -> list[Conversation]:
    """Start so many conversations, some at a time."""
    begun: list[Conversation] = []
    numbers = iter(range(count))

    async def start_some() -> None:
        for number in numbers:
            begun.append(await start(number))
            if len(begun) % 500 == 0:
                tell(f"{len(begun)} of {count} conversations")

    await asyncio.gather(*(start_some() for _ in range(STARTS_AT_ONCE)))
    return begun


async def run(options: argparse.Namespace) -> Report:
    """Return the figures; they are told as they come, for what stops a long run loses no more."""
    active = options.active
    async with open_stage(options) as stage:
        before = stage.memory()

        async def begin_rest(_: int) -> Conversation:
            conversation = await stage.client.start("Hello.", stage.agent("rest"))
            await conversation.wait_for_turn()
            return conversation

        async def begin_work(number: int) -> Conversation:
            user = stage.user(f"user-{number // PER_USER}")
            return await user.start("Work.", stage.agent("work"))

        began = monotonic()
        resting = await start_all(options.idle, begin_rest)
        seconds = monotonic() - began
        report: Report = {
            "idle": len(resting),
            "active": active,
            "workers": options.workers,
            "answer_seconds": options.answer_seconds,
            "heartbeat_timeout": options.heartbeat_timeout,
            "conversations_begun_a_second": round(len(resting) / seconds, 1),
            "memory_mb": {"begin": before, "at rest": stage.memory()},
            "history_at_rest": await measure_history(resting[-EXAMPLES:]),
            "seconds": {"at rest": await measure(stage, resting)},
        }
        tell(report)
        working = await start_all(active, begin_work)
        examples = working[:: max(1, active // EXAMPLES)]
        warm_up = await wait_for_first_steps(examples)
        began, cpu, steps = monotonic(), stage.cpu(), await count_steps(examples)
        await asyncio.sleep(WORK_SECONDS)
        seconds = monotonic() - began
        used = {name: after - cpu[name] for name, after in stage.cpu().items()}
        steps = await count_steps(examples) - steps
        share = active / max(1, len(examples))
        report["seconds"]["at work"] = await measure(stage, resting)
        return report | {
            "load_of_the_machine": os.getloadavg()[0],
            "memory_mb": report["memory_mb"] | {"at work": stage.memory()},
            "history_at_work": await measure_history(examples),
            "timeouts": await count_all_timeouts(examples),
            "seconds_until_all_work": round(warm_up),
            "steps_a_second": round(steps * share / seconds, 1),
            "cores": {name: round(value / seconds, 2) for name, value in used.items()},
        }


async def wait_for_first_steps(conversations: Sequence[Conversation]) -> float:
    """Wait until each conversation has taken some steps; return the seconds that it took."""
    began = monotonic()
    for conversation in conversations:
        while (await conversation.status()).iterations < FIRST_STEPS:
            await asyncio.sleep(WARM_UP_INTERVAL)
            if monotonic() - began > MAX_WARM_UP:
                return monotonic() - began
    return monotonic() - began


async def count_steps(conversations: Sequence[Conversation]) -> int:
    """Return the steps that some conversations have taken."""
    return sum([(await conversation.status()).iterations for conversation in conversations])


async def count_all_timeouts(conversations: Sequence[Conversation]) -> Counter[str]:
    """Count the steps and the workflow tasks that were begun again, though no worker was lost."""
    counts = Counter[str]()
    for conversation in conversations:
        counts += count_timeouts((await conversation.handle.fetch_history()).events)
    return counts


async def measure_history(conversations: Sequence[Conversation]) -> dict[str, float]:
    """Return the median events and bytes of the history of a workflow."""
    infos = [
        (await conversation.handle.describe()).raw_description.workflow_execution_info
        for conversation in conversations
    ]
    if not infos:
        return {}
    return {
        "events": statistics.median(info.history_length for info in infos),
        "bytes": statistics.median(info.history_size_bytes for info in infos),
    }


async def measure(stage: Stage, resting: list[Conversation]) -> dict[str, Any]:
    """Time messages to conversations at rest, and lists."""
    async with httpx.AsyncClient(timeout=60) as http:

        async def list_over_http() -> None:
            headers = {"Authorization": f"Bearer {stage.key}"}
            (
                await http.get(f"{stage.gateway}/v1/conversations", headers=headers)
            ).raise_for_status()

        async def list_at_the_terminal() -> None:
            command = [sys.executable, "-P", "-m", "perdure.cli.main", "ls", "-o", "json"]
            await asyncio.to_thread(run_quietly, command, stage.env, stage.servers.folder)

        rest = iter(resting[:: max(1, len(resting) // SAMPLES)])

        async def send() -> None:
            with contextlib.suppress(StopIteration):
                conversation = next(rest)
                message = uuid4().hex
                await conversation.send("And?", message)
                await conversation.wait_for_turn(message)

        works = {"a message": send, "perdure ls": list_at_the_terminal, "the list": list_over_http}
        return {name: await time_each(work) for name, work in works.items()}


def run_quietly(command: list[str], env: dict[str, str], folder: Path) -> None:
    subprocess.run(
        command,
        env=env,
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # as in a terminal: Linux shares the processor among sessions
    )


async def time_each(work: Callable[[], Awaitable[None]]) -> dict[str, float]:
    """Return the median and the greatest of the seconds of some runs, and their number."""
    seconds: list[float] = []
    while len(seconds) < SAMPLES and sum(seconds) < MAX_SECONDS:
        began = monotonic()
        await work()
        seconds.append(monotonic() - began)
    figures = {"median": statistics.median(seconds), "most": max(seconds)}
    return {name: round(value, 3) for name, value in figures.items()} | {"count": len(seconds)}


def show(report: Report) -> None:
    for name, value in report.items():
        print(f"{name.replace('_', ' ')}: {value}")


def main() -> None:
    parser = make_parser("bench.scale", __doc__)
    parser.add_argument("--idle", type=at_least(SAMPLES), default=10_000)
    parser.add_argument("--active", type=at_least(0), default=500)
    parser.add_argument("--workers", type=at_least(1), default=2)
    parser.add_argument("--answer-seconds", type=float, default=ANSWER_SECONDS)
    parser.add_argument("--heartbeat-timeout", type=float, default=HEARTBEAT_SECONDS)
    run_bench(parser, run, show)


if __name__ == "__main__":
    main()
