"""The cost of a step in a very long conversation: `python -m bench.long [-o json]`.

A conversation of `--steps` steps, every one a think and an act, with messages that arrive all the
while. Its cost per step at the end against that at the beginning, the memory of the worker, and
whether every message is in the log exactly once: a lost one fails the run, as does a conversation
that never continued as new. The worker is a process of its own.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.model import write_scripts
from bench.processes import cpu_seconds, memory_bytes
from perdure.agent.policies import Limits
from perdure.agent.spec import Agent, ModelSpec
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.client.ids import new_conversation_id
from perdure.embedded.temporal import TemporalServer
from perdure.events.entry import Entry
from perdure.events.messages import MessageEvent
from perdure.events.tools import ObservationEvent
from perdure.storage.files import FileStore
from perdure.temporal.connect import connect

MESSAGE_INTERVAL = 50
"""Events between two messages."""

QUIET_EVENTS = 100
"""Events before the end at which nobody speaks any more: a message behind it would be a new turn,
which the script knows nothing of."""

TENTHS = 10


@dataclass
class Sample:
    """The worker's CPU seconds and resident memory in bytes, when the log had `events`."""

    events: int
    cpu: float
    memory: int


def sample(pid: int, events: int) -> Sample:
    return Sample(events, cpu_seconds(pid), memory_bytes(pid))


@contextlib.asynccontextmanager
async def worker(folder: Path, address: str) -> AsyncIterator[int]:
    environment = {
        **os.environ,
        "TEMPORAL_ADDRESS": address,
        "PERDURE_STORE": f"file://{folder / 'store'}",
        "PERDURE_DATA": str(folder),
    }
    process = subprocess.Popen([sys.executable, "-m", "perdure.worker"], env=environment)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


async def measure(steps: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as name:
        folder = Path(name)
        server = await TemporalServer.start(folder / "temporal", ui=False)
        write_scripts(folder, steps)
        try:
            async with worker(folder, server.address) as pid:
                client = Client(await connect(server.address), FileStore(folder / "store"))
                return await _measured(client, pid, folder, steps)
        finally:
            await server.stop()


async def _measured(client: Client, pid: int, folder: Path, steps: int) -> dict[str, Any]:
    spec = Agent(
        model=ModelSpec(name=f"scripted:{folder / 'script.json'}#steps-{steps}"),
        tools=("bench.tools:add",),
        limits=Limits(max_iterations=10 * steps),
        idle_timeout=1,
    )
    talk = client.conversation(new_conversation_id())
    await talk.start("Add, again and again.", spec, "m0")
    finished = asyncio.ensure_future(talk.handle.result())
    samples, sent, runs = [sample(pid, 0)], ["m0"], set[str | None]()
    while not finished.done():
        end = samples[-1].events + MESSAGE_INTERVAL
        # One object is asked for: a listing of so many files would be what is measured.
        if await talk.log.find(end - 1) is not None:
            while await talk.log.find(end) is not None:
                end += 1
            samples.append(sample(pid, end))
            runs.add((await talk.handle.describe()).run_id)
            if end < 2 * steps - QUIET_EVENTS:
                sent.append(f"m{len(sent)}")
                await talk.send(f"Message {len(sent)}.", message_id=sent[-1])
        await asyncio.sleep(0.02)
    outcome = await finished
    assert outcome.status == "finished", outcome.reason
    return _report(await _entries(talk), samples, sent, len(runs))


async def _entries(talk: Conversation) -> list[Entry]:
    return await talk.log.read(0, await talk.log.end())


def _report(
    entries: Sequence[Entry], samples: Sequence[Sample], sent: Sequence[str], runs: int
) -> dict[str, Any]:
    at = [
        datetime.fromisoformat(entry.event.timestamp)
        for entry in entries
        if isinstance(entry.event, ObservationEvent)
    ]
    took = [(later - earlier).total_seconds() for earlier, later in itertools.pairwise(at)]
    spent = [
        (later.cpu - earlier.cpu) / (later.events - earlier.events)
        for earlier, later in itertools.pairwise(samples)
    ]
    heard = [
        entry.event.message_id
        for entry in entries
        if isinstance(entry.event, MessageEvent) and entry.event.source == "user"
    ]
    half = len(samples) // 2
    return {
        "steps": len(at),
        "events": len(entries),
        "runs": runs,
        "time_ratio": _ratio(took),
        "cpu_ratio": _ratio(spent),
        "memory_half_mb": samples[half].memory / 1e6,
        "memory_end_mb": samples[-1].memory / 1e6,
        "messages_sent": len(sent),
        "messages_lost": len(set(sent) - set(heard)),
        "messages_twice": len(heard) - len(set(heard)),
    }


def _ratio(figures: Sequence[float]) -> float:
    """The median of the last tenth against that of the first."""
    tenth = max(1, len(figures) // TENTHS)
    return statistics.median(figures[-tenth:]) / statistics.median(figures[:tenth])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.long", description=__doc__)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    parser.add_argument("--steps", type=int, default=5000, help="5,000 make 10,000 events")
    options = parser.parse_args()
    report = asyncio.run(measure(options.steps))
    if options.output == "json":
        json.dump(report, sys.stdout, indent=2)
    else:
        for name, value in report.items():
            print(f"{name:16}{value:12.2f}" if isinstance(value, float) else f"{name:16}{value:12}")
    sys.exit(bool(report["messages_lost"] or report["messages_twice"] or report["runs"] < 2))


if __name__ == "__main__":
    main()
