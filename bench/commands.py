"""The cost of each command: `python -m bench.commands [--against FOLDER] [-o json]`.

CPU and wall time of whole processes, on a running stack with `--conversations` conversations and
one of `--events` events. With `--against`, a checkout of another version runs the same commands on
the same stack in turn: only figures of one run may be compared. Figures are medians over rounds.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.processes import ROOT, measured_environment
from perdure.agent.loop.evolve import fold
from perdure.agent.loop.state import State
from perdure.agent.spec import Agent, ModelSpec
from perdure.client.ids import new_conversation_id
from perdure.embedded.record import open_stack_store
from perdure.embedded.stack import Stack
from perdure.events.base import TIMESTAMP_FORMAT
from perdure.events.content import Message, TextContent
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.entry import Origin
from perdure.events.event import AnyEvent
from perdure.events.messages import MessageEvent
from perdure.events.projection import summarize
from perdure.storage.log.event_log import EventLog
from perdure.storage.store import Store

EVENTS = 10
"""Events of a conversation that is only listed."""


@dataclass(frozen=True)
class Cost:
    """Seconds of one process."""

    cpu: float
    wall: float


@dataclass(frozen=True)
class Version:
    """A checkout whose commands are measured."""

    name: str
    folder: Path

    def run(self, args: list[str], env: Mapping[str, str]) -> Cost:
        """Run a command to its end. Raises CalledProcessError with what it printed."""
        command = [sys.executable, "-m", "perdure.cli.main", *args]
        with tempfile.TemporaryFile() as output:
            began = time.perf_counter()
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**env, "PYTHONPATH": str(self.folder)},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.perf_counter() - began
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                output.seek(0)
                raise subprocess.CalledProcessError(process.returncode, command, output.read())
        return Cost(usage.ru_utime + usage.ru_stime, wall)


async def write_conversation(store: Store, events: int) -> str:
    """Write a conversation at rest, as workers leave one; return its id."""
    log = EventLog(store, "local", new_conversation_id())
    stamp = datetime.now(UTC).strftime(TIMESTAMP_FORMAT)
    spec = Agent(model=ModelSpec(name="openai/gpt-5"), tools=("terminal", "finish"))

    def note_state(key: str, value: Any) -> AnyEvent:
        return ConversationStateUpdateEvent(timestamp=stamp, key=key, value=value)

    def say(source: Any, role: Any, words: str) -> AnyEvent:
        message = Message(role=role, content=(TextContent(text=words),))
        return MessageEvent(timestamp=stamp, source=source, llm_message=message)

    opening = [
        note_state("opened", {"run_id": "bench"}),
        note_state("spec", spec.model_dump(mode="json")),
        say("user", "user", f"Do the work of {events} events, and say what came of it."),
    ]
    answers = [say("agent", "assistant", f"Answer {nth}. " * 20) for nth in range(3, events)]
    origin = Origin(run="bench", activity="1")
    written = await log.append([*opening, *answers], base=0, origin=origin)
    state = fold(State(), [summarize(entry) for entry in written])
    await log.save_state(state.model_dump_json().encode())
    return log.conversation_id


async def measure(
    versions: list[Version], rounds: int, conversations: int, events: int
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as name:
        folder = Path(name)
        script = folder / "script.json"
        script.write_text(json.dumps({"answers": [{"content": "Done."}] * 10}))
        stack = await Stack.start(folder / "data", ui=False)
        try:
            store = open_stack_store(stack.info)
            for _ in range(conversations - 1):
                await write_conversation(store, EVENTS)
            long = await write_conversation(store, events)
            await store.close()
            env = measured_environment({"PERDURE_DATA": str(folder / "data")})
            return await asyncio.to_thread(_measure_all, versions, rounds, env, long, script)
        finally:
            await stack.stop()


def _commands(long: str, live: str, script: Path) -> dict[str, list[str]]:
    return {
        "--help": ["--help"],
        "ls": ["ls"],
        "ls --limit 100": ["ls", "--limit", "100"],
        "show": ["show", long],
        "status": ["status", live],
        "send": ["send", live, "And now?"],
        "pause": ["pause", live],
        "run": ["run", "Say it.", "--model", f"scripted:{script}"],
        "doctor": ["doctor"],
    }


def _measure_all(
    versions: list[Version], rounds: int, env: Mapping[str, str], long: str, script: Path
) -> dict[str, Any]:
    live = new_conversation_id()
    begin = ["run", "Say it.", "--model", f"scripted:{script}", "--id", live]
    versions[0].run(begin, env)
    costs: dict[str, dict[str, list[Cost]]] = {}
    for nth in range(rounds + 1):
        for name, args in _commands(long, live, script).items():
            for version in versions:
                cost = version.run(args, env)
                if nth:  # the first round compiles
                    costs.setdefault(name, {}).setdefault(version.name, []).append(cost)
    return {
        name: {version: asdict(_median(each)) for version, each in row.items()}
        for name, row in costs.items()
    }


def _median(costs: list[Cost]) -> Cost:
    return Cost(
        statistics.median(cost.cpu for cost in costs),
        statistics.median(cost.wall for cost in costs),
    )


def show(report: dict[str, Any]) -> None:
    names = list(next(iter(report.values())))
    print(f"{'seconds':16}" + "".join(f"{f'{name} cpu':>14}{f'{name} wall':>14}" for name in names))
    for command, row in report.items():
        figures = (f"{row[name]['cpu']:14.2f}{row[name]['wall']:14.2f}" for name in names)
        print(f"{command:16}" + "".join(figures))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.commands", description=__doc__)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    parser.add_argument("--against", type=Path, help="a checkout of another version")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--conversations", type=int, default=100)
    parser.add_argument("--events", type=int, default=1000)
    options = parser.parse_args()
    versions = [Version("now", ROOT)]
    if options.against:
        versions.insert(0, Version("before", options.against.absolute()))
    work = measure(versions, options.rounds, options.conversations, options.events)
    report = asyncio.run(work)
    if options.output == "json":
        json.dump(report, sys.stdout, indent=2)
    else:
        show(report)


if __name__ == "__main__":
    main()
