"""Opening a long conversation by OpenHands' client: `python -m bench.gateway.openhands.history`.

`RemoteConversation`, unmodified, attaches to a conversation of `--events` events through a gateway,
and reads them by pages of 100: first where the gateway has read nothing of it yet, then again. Time
in seconds, and the gateway's CPU and requests to the store and to Temporal meanwhile. Exits with 77
where openhands-sdk is not installed (`make openhands` installs it).
"""

import argparse
import asyncio
import json
import sys
from typing import Any

from bench.command import at_least, make_parser, run_bench
from bench.gateway.ending import BenchFailed
from bench.gateway.processes import USER, Stage, open_stage
from bench.open import message_at
from perdure.agent.loop.evolve import fold
from perdure.agent.loop.state import State
from perdure.client.ids import new_conversation_id
from perdure.events.entry import Origin
from perdure.events.projection import summarize
from perdure.storage.log.cached_state import encode_cached_state
from perdure.storage.log.event_log import EventLog
from tests.exports import openhands_environment

EVENTS_PER_APPEND = 100

PROGRAM = """
import json, os, sys, time, uuid
from openhands.sdk.conversation.impl.remote_conversation import RemoteConversation
from openhands.sdk.event.conversation_state import ConversationStateUpdateEvent
from openhands.sdk.workspace import RemoteWorkspace

url, key, name = sys.argv[1:4]
workspace = RemoteWorkspace(host=f"{url}/openhands", api_key=key, working_dir="workspace")
began = time.monotonic()
conversation = RemoteConversation.attach(workspace, uuid.UUID(name), visualizer=None)
attached = time.monotonic() - began
events = conversation.state.events
count = sum(not isinstance(event, ConversationStateUpdateEvent) for event in events)
print("OPENED " + json.dumps({"seconds": attached, "events": count}), flush=True)
os._exit(0)
"""
"""A program that attaches; the time of its imports is not counted."""


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    report: dict[str, Any] = {}
    async with open_stage({"silent": {"answers": [{"content": "Hello."}]}}) as stage:
        name = await write_log(stage, options.events)
        for tries in ("first", *["again"] * options.rounds):
            opened = await open_conversation(stage, name)
            if opened["events"] != options.events:
                raise BenchFailed(f"{opened['events']} of {options.events} events came.")
            report.setdefault(tries, []).append(opened)
    return report


async def write_log(stage: Stage, events: int) -> str:
    """Write a conversation of so many events, and return its id."""
    log = EventLog(stage.client.store, USER, new_conversation_id())
    for base in range(0, events, EVENTS_PER_APPEND):
        count = min(EVENTS_PER_APPEND, events - base)
        origin = Origin(run="run", activity=str(base))
        await log.append([message_at(base)] * count, base=base, origin=origin)
    state = fold(State(), [summarize(entry) for entry in await log.read(0, events)])
    await log.save_state(encode_cached_state(state))
    return log.conversation_id


async def open_conversation(stage: Stage, name: str) -> dict[str, Any]:
    """Open it by a client, a process of its own; return the time, and what the gateway spent."""
    before = await stage.gateway.measure()
    client = await asyncio.create_subprocess_exec(
        *(str(openhands_environment.PYTHON), "-c", PROGRAM, stage.gateway.url, stage.key, name),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    out, _ = await client.communicate()
    after = await stage.gateway.measure()
    lines = [line for line in out.decode().splitlines() if line.startswith("OPENED ")]
    if not lines:
        raise BenchFailed("The client did not open the conversation.")
    opened: dict[str, Any] = json.loads(lines[0].removeprefix("OPENED "))
    assert before.requests is not None, "the gateway counts them"
    assert after.requests is not None, "the gateway counts them"
    kinds = ("store", "temporal")
    requests = {kind: dict(after.requests[kind] - before.requests[kind]) for kind in kinds}
    return {**opened, "cpu": after.cpu - before.cpu, "requests": requests}


def show(report: dict[str, Any]) -> None:
    for name, runs in report.items():
        for run in runs:
            counts = {kind: sum(found.values()) for kind, found in run["requests"].items()}
            print(
                f"{name:6} {run['events']:,} events in {run['seconds']:.2f} s, gateway CPU"
                f" {run['cpu']:.2f} s, requests to the store {counts['store']}, to Temporal"
                f" {counts['temporal']}"
            )


def main() -> None:
    parser = make_parser("bench.gateway.openhands.history", __doc__)
    parser.add_argument("--events", type=at_least(1), default=10_000)
    parser.add_argument("--rounds", type=at_least(1), default=2, help="of opening it again")
    if not openhands_environment.ready():
        print("NOT CHECKED: openhands-sdk is not installed, see `make openhands`", file=sys.stderr)
        sys.exit(77)
    run_bench(parser, measure, show)


if __name__ == "__main__":
    main()
