"""The cost of a step in a very long conversation: `python -m bench.long [-o json]`.

A conversation of `--steps` steps, every one a think and an act, with messages that arrive all the
while. Its CPU a step by tenth, the last tenth over the first, the memory of the worker, and
whether every message is in the log exactly once: a lost one fails the run, as does a conversation
that never continued as new. The worker is a process of its own.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bench.command import at_least, make_parser, run_bench
from bench.cost import Samples, sample_costs
from bench.servers import Servers, start_servers
from bench.shapes import Shape
from bench.sides import Tree, scripts_for, start_side
from bench.tenths import drifts, report_tenths, show_tenths
from perdure.agent.spec import Agent
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.client.ids import new_conversation_id
from perdure.events.entry import Entry
from perdure.events.messages import MessageEvent
from perdure.events.tools import ObservationEvent
from perdure.temporal.connect import connect

MESSAGE_INTERVAL = 50
"""Events between two messages."""

QUIET_EVENTS = 100
"""Events before the end at which nobody speaks any more: a message behind it would be a new turn,
which the script knows nothing of."""


@dataclass
class Course:
    """The ids of the messages that were sent, and of the workflow's runs."""

    sent: list[str] = field(default_factory=lambda: ["m0"])
    runs: set[str | None] = field(default_factory=set)


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    shape, steps = Shape(options.s3, options.http), options.steps
    async with (
        start_servers(scripts_for(steps)) as servers,
        start_side(servers, Tree(), shape.on_s3) as side,
    ):
        temporal = await connect(servers.temporal.address)
        client = Client(temporal, servers.store(shape.on_s3), task_queue=side.queue)
        talk = client.conversation(new_conversation_id())
        async with sample_costs(side.pids) as samples:
            course = await hold_conversation(talk, make_spec(servers, shape, steps), steps)
        entries = await talk.log.read(0, await talk.log.end())
    sizes = {"shape": shape.name, "load": os.getloadavg()[2]}
    return sizes | report_course(entries, samples, course)


def make_spec(servers: Servers, shape: Shape, steps: int) -> Agent:
    fields = {"idle_timeout": 1}
    file, api_base = str(servers.scripts), servers.api_base
    return Agent.model_validate(shape.agent(f"steps-{steps}", file, api_base, **fields))


async def hold_conversation(talk: Conversation, spec: Agent, steps: int) -> Course:
    """Send messages until shortly before the end, and wait for it."""
    course, end = Course(), 0
    await talk.start("Add, again and again.", spec, course.sent[0])
    finished = asyncio.ensure_future(talk.handle.result())
    while not finished.done():
        await asyncio.sleep(0.02)
        # One object is asked for: a listing of so many files would be what is measured.
        if await talk.log.find(end + MESSAGE_INTERVAL - 1) is None:
            continue
        end += MESSAGE_INTERVAL
        course.runs.add((await talk.handle.describe()).run_id)
        if end < 2 * steps - QUIET_EVENTS:
            course.sent.append(f"m{len(course.sent)}")
            await talk.send(f"Message {len(course.sent)}.", message_id=course.sent[-1])
    outcome = await finished
    assert outcome.status == "finished", outcome.reason
    return course


def report_course(entries: Sequence[Entry], samples: Samples, course: Course) -> dict[str, Any]:
    at = [
        datetime.fromisoformat(entry.event.timestamp).replace(tzinfo=UTC).timestamp()
        for entry in entries
        if isinstance(entry.event, ObservationEvent)
    ]
    heard = [
        entry.event.message_id
        for entry in entries
        if isinstance(entry.event, MessageEvent) and entry.event.source == "user"
    ]
    tenths = report_tenths(at, samples)
    return {
        "steps": len(at),
        "events": len(entries),
        "runs": len(course.runs),
        "tenths": tenths,
        "drift": drifts(tenths),
        "memory_half_mb": samples.memory[len(samples.memory) // 2] / 1e6,
        "memory_end_mb": samples.memory[-1] / 1e6,
        "messages_sent": len(course.sent),
        "messages_lost": len(set(course.sent) - set(heard)),
        "messages_twice": len(heard) - len(set(heard)),
    }


def show(report: dict[str, Any]) -> None:
    for name, value in report.items():
        if name == "tenths":
            for part, row in value.items():
                show_tenths(f"{part} a step, by tenth", row)
        elif name == "drift":
            for part, ratio in value.items():
                print(f"{f'last tenth over first, {part}':44}{ratio:7.2f}")
        else:
            print(f"{name:44}{value:7.1f}" if isinstance(value, float) else f"{name:44}{value:>7}")


def main() -> None:
    parser = make_parser("bench.long", __doc__)
    parser.add_argument("--steps", type=at_least(200), default=5000, help="5,000 are 10,000 events")
    parser.add_argument("--s3", action="store_true", help="on S3, not on files")
    parser.add_argument("--http", action="store_true", help="with a model over HTTP")
    report = run_bench(parser, measure, show)
    lost = report["messages_lost"] or report["messages_twice"]
    sys.exit("A message is lost or twice in the log." if lost else report["runs"] < 2)


if __name__ == "__main__":
    main()
