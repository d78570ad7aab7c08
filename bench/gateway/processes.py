"""The processes of a run: servers, a gateway that counts, and a worker that notes times."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.gateway.attached_clients import AttachedClients, attach_clients
from bench.gateway.ending import BenchFailed, end_child, end_process, within
from bench.gateway.measuring import Usage
from bench.processes import (
    cpu_seconds,
    measured_environment,
    memory_bytes,
    start_process,
    wait_until_polling,
)
from bench.servers import Servers, start_servers
from perdure.client.client import Client
from perdure.storage.credentials.api_keys import create_api_key
from perdure.temporal.connect import connect

USER = "bench"
TASK_QUEUE = "bench-gateway"

START_SECONDS = 240.0

COUNTS_SECONDS = 60.0
"""Seconds that the gateway has to say what it has asked for."""

LOG_CHARS = 2000
"""Characters of a log that are shown of a process that has ended: its last ones."""

UNLIMITED = {
    "PERDURE_GATEWAY_CONNECTIONS": "100000",
    "PERDURE_GATEWAY_RATES": json.dumps({"read": 10**6, "write": 10**6}),
}
"""Settings of a gateway of which one user asks as much as a thousand would."""


@dataclass
class ServedGateway:
    """A gateway at `url`, which counts its requests; `others` are processes that work for it."""

    url: str
    process: asyncio.subprocess.Process
    others: dict[str, int]

    async def measure(self) -> Usage:
        """Return what it has used and asked for so far. Raises BenchFailed."""
        if self.process.returncode is not None:
            raise BenchFailed(f"The gateway ended with exit code {self.process.returncode}.")
        try:
            counts = await asyncio.to_thread(self._load_counts)
        except OSError as error:
            raise BenchFailed(f"The gateway does not say what it asked for: {error}.") from error
        pid = self.process.pid
        requests = {kind: Counter(counts[kind]) for kind in ("store", "temporal")}
        others = {name: cpu_seconds(other) for name, other in self.others.items()}
        return Usage(cpu_seconds(pid), memory_bytes(pid), requests, others)

    def _load_counts(self) -> dict[str, dict[str, int]]:
        with urllib.request.urlopen(f"{self.url}/counts", timeout=COUNTS_SECONDS) as answer:
            counts: dict[str, dict[str, int]] = json.load(answer)
            return counts


@dataclass
class Stage:
    """The servers and processes of a run; `appended` is the file with the times of all events."""

    servers: Servers
    client: Client
    gateway: ServedGateway
    worker: subprocess.Popen[bytes]
    key: str
    appended: Path
    worker_log: Path

    def attach(
        self, kind: str, each: int, conversation_ids: Sequence[str]
    ) -> contextlib.AbstractAsyncContextManager[AttachedClients]:
        """Attach so many clients of a kind to each conversation while inside."""
        file = self.servers.folder / f"{kind}.json"
        return attach_clients(self.gateway.url, self.key, kind, each, conversation_ids, file)

    async def measure_warm(self, conversation_id: str) -> Usage:
        """Measure a gateway that has had clients, and has none."""
        for kind in ("socket", "stream"):
            async with self.attach(kind, 1, [conversation_id]):
                pass
        return await self.gateway.measure()

    def require_worker(self) -> None:
        """Raise BenchFailed if the worker has ended."""
        if (code := self.worker.poll()) is not None:
            log = self.worker_log.read_text()[-LOG_CHARS:]
            raise BenchFailed(f"The worker ended with exit code {code}:\n{log}")


@contextlib.asynccontextmanager
async def open_stage(scripts: dict[str, Any]) -> AsyncIterator[Stage]:
    """Start servers, a worker and a gateway, each a process of its own. Raises BenchFailed."""
    async with contextlib.AsyncExitStack() as ending:
        async with within(START_SECONDS, "Starting the servers, a worker and a gateway"):
            stage = await _start(scripts, ending)
        yield stage


async def _start(scripts: dict[str, Any], ending: contextlib.AsyncExitStack) -> Stage:
    servers = await ending.enter_async_context(start_servers(scripts))
    store = servers.store(on_s3=True)
    ending.push_async_callback(store.close)
    own = servers.environment(on_s3=True)
    own |= {"PERDURE_TASK_QUEUE": TASK_QUEUE, "PERDURE_USER": USER}
    own |= UNLIMITED
    own |= {"OPENAI_API_KEY": "the scripted model asks for none"}
    temporal = await connect(servers.temporal.address, quiet=True)
    client = Client(temporal, store, USER, TASK_QUEUE)
    appended = servers.folder / "appended"
    log = servers.folder / "worker.log"
    worker = start_process(
        [sys.executable, "-m", "bench.gateway.timed_worker", str(appended)], log, own
    )
    ending.push_async_callback(end_child, worker)
    await wait_until_polling(worker, log)
    gateway = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.gateway.served", servers.temporal.address),
        stdout=asyncio.subprocess.PIPE,
        env=measured_environment(own),
    )
    ending.push_async_callback(end_process, gateway)
    assert gateway.stdout is not None
    url = (await gateway.stdout.readline()).decode().strip()
    if not url:
        raise BenchFailed("The gateway ended before it served: see its last words above.")
    key = (await create_api_key(store, USER, "bench", ("read", "write"))).secret
    others = {
        "the worker": worker.pid,
        "Temporal": servers.temporal.pid,
        "the store": servers.seaweed.pid,
        "the bench": os.getpid(),
    }
    served = ServedGateway(url, gateway, others)
    return Stage(servers, client, served, worker, key, appended, log)
