"""`python -m bench.bill`: what a conversation asks of the store and of Temporal, by its parts.

Requests to S3 are counted at the store, and Temporal's actions by its server, whose metric `action`
is what Temporal Cloud bills. Counts are those of differences between conversations: time plays no
part, but for heartbeats, of which each second of a step has some.
"""

import argparse
import asyncio
import contextlib
import json
import re
import tempfile
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httpx

from bench.model import steps_script, write_scripts
from bench.store_operations import CountingStore
from perdure.activities.support.resources import Resources
from perdure.agent.spec import Agent, ModelSpec
from perdure.client.client import Client
from perdure.embedded.ports import choose_ports
from perdure.embedded.seaweed import Seaweed
from perdure.embedded.temporal import TemporalServer
from perdure.models.router import ModelRouter
from perdure.storage.s3 import S3Store
from perdure.storage.store import S3Access, Store, list_keys
from perdure.temporal.connect import connect
from perdure.worker import build_worker, build_workspace_worker

BUCKET = "bill"
SHORT, LONG = 2, 12
"""The calls of tools in two conversations, whose difference is that of the calls."""

SECONDS = 2.0
"""The seconds of each of a model's answers in a conversation whose model is slow."""

PUTS = frozenset({"create", "replace", "replace_version"})
GETS = frozenset({"read", "read_version"})
LISTS = frozenset({"list", "folders"})

ACTION = re.compile(r'^action\{.*?action_type="([^"]+)".*\} (\S+)$', re.MULTILINE)
SETTLE = 1.0
"""Seconds until the server's metrics have what it did."""


@dataclass
class Bill:
    """Requests to S3 by kind, Temporal's actions by type, bytes that stay, and of a history."""

    requests: Counter[str] = field(default_factory=Counter)
    actions: Counter[str] = field(default_factory=Counter)
    stored: int = 0
    history: int = 0

    def minus(self, other: "Bill", parts: float = 1) -> dict[str, Any]:
        """Return the difference to another bill, by the number of its parts."""
        return {
            "requests": _divide(self.requests, other.requests, parts),
            "actions": _divide(self.actions, other.actions, parts),
            "stored bytes": round((self.stored - other.stored) / parts),
            "history bytes": round((self.history - other.history) / parts),
        }


def _divide(these: Counter[str], others: Counter[str], parts: float) -> dict[str, float]:
    names = sorted({*these, *others})
    counts = {name: round((these[name] - others[name]) / parts, 2) for name in names}
    return {name: count for name, count in counts.items() if count}


@dataclass
class Stage:
    """The servers, whose requests and actions are counted."""

    temporal: TemporalServer
    metrics_port: int
    store: S3Store
    folder: Path

    async def read_actions(self) -> Counter[str]:
        await asyncio.sleep(SETTLE)
        async with httpx.AsyncClient() as http:
            text = (await http.get(f"http://127.0.0.1:{self.metrics_port}/metrics")).text
        counts: Counter[str] = Counter()
        for name, value in ACTION.findall(text):
            counts[name] += int(float(value))
        return counts

    async def measure(self, calls: int, delay: float = 0.0, turns: int = 1) -> Bill:
        """Run a conversation by a worker in this process, and return its bill."""
        counting, before = CountingStore(self.store), await self.read_actions()
        name = f"bill-{uuid.uuid4().hex[:8]}"
        file = write_scripts(self.folder / f"{name}.json", {name: steps_script(calls, delay)})
        agent = Agent(
            model=ModelSpec(name=f"scripted:{file}#{name}"),
            tools=("bench.tools:add",),
            idle_timeout=0.001,
        )
        temporal, store = await connect(self.temporal.address), cast("Store", counting)
        home = f"{name}@home"
        world = Resources(store, ModelRouter(), self.folder / "workspaces", home=home)
        client = Client(temporal, store, task_queue=name)
        async with build_worker(temporal, name, world), build_workspace_worker(temporal, world):
            conversation = await client.start("Add.", agent)
            await conversation.handle.result()
            for _ in range(turns - 1):
                await conversation.send("Thanks.")
                await conversation.handle.result()
            await world.list_notes.flush()
            described = await conversation.handle.describe()
        history = described.raw_description.workflow_execution_info.history_size_bytes
        actions = await self.read_actions()
        actions.subtract(before)
        stored = await self._measure_bytes(conversation.id)
        return Bill(_classify(counting.counts), +actions, stored, history)

    async def _measure_bytes(self, conversation_id: str) -> int:
        total = 0
        async for key in list_keys(self.store, ""):
            if conversation_id in key:
                total += len(await self.store.read(key) or b"")
        return total


def _classify(operations: Counter[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for operation, count in operations.items():
        name = operation.split()[0]
        kinds = {"PUT": PUTS, "GET": GETS, "LIST": LISTS, "DELETE": frozenset({"delete"})}
        counts.update({kind: count for kind, names in kinds.items() if name in names})
    return counts


@contextlib.asynccontextmanager
async def open_stage() -> AsyncIterator[Stage]:
    """Start the servers; nothing of them is left afterwards. Raises ProcessFailed."""
    with tempfile.TemporaryDirectory(prefix="perdure-bill-") as name:
        folder = Path(name)
        [port] = choose_ports(folder / "metrics.json", ["metrics"]).values()
        options = ("--metrics-port", str(port))
        temporal = await TemporalServer.prepare(folder / "temporal", ui=False, options=options)
        await temporal.launch()
        seaweed = await Seaweed.start(folder / "store")
        await seaweed.make_bucket(BUCKET)
        access = S3Access(seaweed.endpoint, seaweed.access_key, seaweed.secret_key, "us-east-1")
        store = S3Store(BUCKET, "", access)
        try:
            yield Stage(temporal, port, store, folder)
        finally:
            await store.close()
            await seaweed.stop()
            await temporal.stop()


async def run() -> dict[str, Any]:
    """Return the bill of each part of a conversation."""
    async with open_stage() as stage:
        await stage.measure(0)  # the first one finds out what the others know
        none, short = await stage.measure(0), await stage.measure(SHORT)
        long = await stage.measure(LONG)
        slow = await stage.measure(SHORT, delay=SECONDS)
        twice = await stage.measure(0, turns=2)
    return {
        "begin, one answer and end": none.minus(Bill()),
        "a call of a tool, and the request that follows": long.minus(short, LONG - SHORT),
        "a further turn of one answer": twice.minus(none),
        "a second of a request or a tool": slow.minus(short, SHORT * SECONDS),
    }


def main() -> None:
    """Print the table of parts."""
    parser = argparse.ArgumentParser(prog="python -m bench.bill", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print it as JSON, by type")
    options = parser.parse_args()
    parts = asyncio.run(run())
    if options.json:
        print(json.dumps(parts, indent=2))
        return
    print(
        "| Part | PUT, LIST | GET | actions | bytes kept | of history |\n|---|---|---|---|---|---|"
    )
    for name, part in parts.items():
        requests = part["requests"]
        puts = requests.get("PUT", 0) + requests.get("LIST", 0)
        actions = sum(part["actions"].values())
        cells = (
            name,
            puts,
            requests.get("GET", 0),
            actions,
            part["stored bytes"],
            part["history bytes"],
        )
        print(f"| {' | '.join(map(str, cells))} |")


if __name__ == "__main__":
    main()
