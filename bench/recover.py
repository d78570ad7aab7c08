"""The time until a conversation continues after a SIGKILL: `python -m bench.recover [-o json]`.

One worker is in the middle of a turn and another waits; the first gets a SIGKILL, and the clock
runs until the next event is in the log. Beside it, the longest time between two events while nobody
was killed, and the heartbeat time-out: how long Temporal waits to know that a worker is gone.
"""

import argparse
import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.model import add
from bench.processes import ROOT, wait_until_polling
from perdure.agent.spec import Agent, ModelSpec
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.embedded.temporal import TemporalServer
from perdure.storage.files import FileStore
from perdure.temporal.connect import connect

DELAY = 0.5
"""Seconds of an answer: a kill lands in the middle of one more often than not."""


async def measure(rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="perdure-recover-") as name:
        folder = Path(name)
        script = folder / "script.json"
        answers = [add(nth) | {"delay": DELAY} for nth in range(500)]
        script.write_text(json.dumps({"answers": [*answers, {"content": "done"}]}))
        server = await TemporalServer.start(folder / "temporal", ui=False)
        try:
            rows = [await one_round(folder, server.address, script) for _ in range(rounds)]
        finally:
            await server.stop()
    spec = Agent(model=ModelSpec(name="none"))
    return {
        "recovery_s": [row["recovery_s"] for row in rows],
        "recovery_median_s": statistics.median(row["recovery_s"] for row in rows),
        "recovery_max_s": max(row["recovery_s"] for row in rows),
        "undisturbed_gap_max_s": max(row["undisturbed_gap_s"] for row in rows),
        "heartbeat_timeout_s": spec.heartbeat_timeout,
    }


async def one_round(folder: Path, address: str, script: Path) -> dict[str, float]:
    queue = f"recover-{uuid.uuid4()}"
    client = Client(await connect(address), FileStore(folder / "store"), task_queue=queue)
    environment = {
        "TEMPORAL_ADDRESS": address,
        "PERDURE_STORE": f"file://{folder / 'store'}",
        "PERDURE_DATA": str(folder),
        "PERDURE_TASK_QUEUE": queue,
    }
    logs = [folder / f"{uuid.uuid4()}.log" for _ in range(2)]
    workers = [start_worker(environment, logs[0])]
    try:
        spec = Agent(model=ModelSpec(name=f"scripted:{script}"), tools=("bench.tools:add",))
        talk = await client.start("Add, again and again.", spec)
        await wait_for_events(talk, 6)
        workers.append(start_worker(environment, logs[1]))
        await wait_until_polling(workers[1], logs[1])
        gap = await longest_gap(talk, 10)
        end = await talk.log.end()
        workers[0].send_signal(signal.SIGKILL)
        killed = time.perf_counter()
        await wait_for_events(talk, end + 1)
        return {"recovery_s": time.perf_counter() - killed, "undisturbed_gap_s": gap}
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


def start_worker(environment: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "perdure.worker"],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
        )


async def wait_for_events(talk: Conversation, end: int) -> None:
    async with asyncio.timeout(120):
        while await talk.log.find(end - 1) is None:
            await asyncio.sleep(0.01)


async def longest_gap(talk: Conversation, events: int) -> float:
    end, longest, last = await talk.log.end(), 0.0, time.perf_counter()
    for nth in range(1, events + 1):
        await wait_for_events(talk, end + nth)
        longest = max(longest, time.perf_counter() - last)
        last = time.perf_counter()
    return longest


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.recover", description=__doc__)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    report = asyncio.run(measure(options.rounds))
    if options.output == "json":
        json.dump(report, sys.stdout, indent=2)
    else:
        for name, value in report.items():
            print(f"{name:24} {value}")


if __name__ == "__main__":
    main()
