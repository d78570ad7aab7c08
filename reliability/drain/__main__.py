"""`python -m reliability.drain`: SIGTERM to workers with 50 steps at work, while load goes on.

Two workers with disks of their own serve the same queue. One after the other is ended by SIGTERM
and started again. Afterwards no step must have been lost or run twice, and each worker must have
been gone within its grace. Calls that outlast the grace are cut off: they are run again where they
may be, and their agents are told where they may not.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from perdure.client.client import Client
from perdure.embedded.ports import choose_ports
from perdure.embedded.seaweed import Seaweed
from perdure.embedded.temporal import TemporalServer
from perdure.storage.open import open_store
from perdure.storage.store import S3Access
from perdure.temporal.connect import connect
from perdure.testing.server import ScriptedServer, serve_app
from reliability.chaos.command_line import new_parser, parse_options, run_harness
from reliability.chaos.environment import BUCKET, TASK_QUEUE, USER, worker_environment
from reliability.chaos.tools import EFFECTS
from reliability.drain.audit import audit
from reliability.drain.load import Load, make_scripts
from reliability.drain.workers import Drain, Worker

DRAINS, SHORT_DRAINS = 20, 2
CONVERSATIONS = 36
"""Conversations at work, which two workers share."""

FEWEST_AT_WORK = 50
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""The folder of Temporal's database: steps heartbeat four times a second, and a disk is slow."""

PAUSE = 5.0
"""Seconds of work from the start of one worker to the end of the other."""


@dataclass
class Stage:
    """The servers and the two workers."""

    client: Client
    workers: list[Worker]
    model: ScriptedServer
    address: str
    effects: Path


@asynccontextmanager
async def open_stage(folder: Path, seed: int) -> AsyncIterator[Stage]:
    """Start everything, with files in `folder`. Raises ProcessFailed."""
    async with AsyncExitStack() as ending:
        memory = ending.enter_context(TemporaryDirectory(prefix="drain-", dir=MEMORY))
        temporal = await TemporalServer.start(Path(memory), ui=False)
        ending.push_async_callback(temporal.stop)
        seaweed = await Seaweed.start(folder / "store")
        ending.push_async_callback(seaweed.stop)
        await seaweed.make_bucket(BUCKET)
        access = S3Access(seaweed.endpoint, seaweed.access_key, seaweed.secret_key, "us-east-1")
        store = open_store(f"s3://{BUCKET}", access)
        ending.push_async_callback(store.close)
        model = ScriptedServer(make_scripts(seed))
        address = await ending.enter_async_context(serve_app(model.app()))
        client = Client(await connect(temporal.address, quiet=True), store, USER, TASK_QUEUE)
        env = worker_environment(temporal.address, seaweed.endpoint, access)
        env[EFFECTS] = str(effects := folder / "effects")
        ports = choose_ports(folder / "ports.json", ("worker-1", "worker-2"))
        workers = [Worker(name, port, env, folder) for name, port in ports.items()]
        for worker in workers:
            await worker.start()
            ending.push_async_callback(worker.stop)
        yield Stage(client, workers, model, f"{address}/v1", effects)


async def run(
    times: int, conversations: int, seed: int, folder: Path, calm: float = 0.0
) -> dict[str, Any]:
    """Drain workers so often while load goes on, after `calm` seconds; return the report."""
    drains, began = list[Drain](), monotonic()
    fewest = FEWEST_AT_WORK if conversations >= CONVERSATIONS else 1
    async with open_stage(folder, seed) as stage:
        load = Load(stage.client, stage.address, seed)
        async with load.running(conversations):
            await asyncio.sleep(calm)
            for nth in range(times):
                await asyncio.sleep(PAUSE)
                worker = stage.workers[nth % len(stage.workers)]
                await worker.wait_for_steps(fewest)
                drains.append(drain := await worker.drain())
                print(f"{nth + 1}/{times} {drain}", file=sys.stderr, flush=True)
                await worker.start()
        counts: Counter[str] = Counter({"conversations": len(load.conversations)})
        requests = sum(it["requested"] for it in stage.model.calls.as_json()["calls"])
        findings = await audit(load.conversations, stage.effects, requests, counts)
    findings += load.failures + [fault for it in drains for fault in it.describe_faults(fewest)]
    return {
        "seed": seed,
        "seconds": round(monotonic() - began),
        "drains": len(drains),
        "steps at work": sorted(drain.at_work for drain in drains),
        "steps cut off": sorted(drain.cut for drain in drains),
        "seconds to the exit": sorted(round(drain.seconds, 1) for drain in drains),
        "counts": dict(sorted(counts.items())),
        "findings": findings,
    }


def main() -> None:
    """Exit code 0 means that no step was lost or run twice, and no worker was late."""
    parser = new_parser("reliability.drain", __doc__)
    parser.add_argument("--times", type=int, help="how often a worker is ended")
    parser.add_argument("--calm", type=float, default=0.0, help="seconds without any drain, before")
    parser.add_argument("--conversations", type=int, default=CONVERSATIONS, help="at work")
    options = parse_options(parser)
    times = SHORT_DRAINS if options.short else DRAINS
    if options.times is not None:
        times = options.times
    run_harness(
        lambda folder: run(times, options.conversations, options.seed, folder, options.calm),
        options.keep,
    )


if __name__ == "__main__":
    main()
