"""The time to read a long log that nobody has cached: `python -m bench.open [--against FOLDER]`.

A log of `--events` events, with its segments and with none, on SeaweedFS. `fold` is that of all
events, as where the cached state may not be used; `open` what a worker does before a conversation
goes on: the check of the log, and its state. With `--against`, a checkout of another version reads
the same log in turn: only figures of one run may be compared. Figures are medians over rounds, in
seconds.
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
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from perdure.agent.loop.evolve import fold
from perdure.agent.loop.state import State
from perdure.embedded.seaweed import Seaweed
from perdure.events.content import Message, TextContent
from perdure.events.entry import Origin
from perdure.events.messages import MessageEvent
from perdure.events.projection import summarize
from perdure.storage.keys import SEGMENTS
from perdure.storage.log.entry_cache import EntryCache
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import read_state
from perdure.storage.log.verify import check_integrity
from perdure.storage.s3 import S3Store
from perdure.storage.store import S3Access, list_keys

BUCKET, USER, CONVERSATION = "bench", "somebody", "018f0000-0000-7000-8000-000000000000"
NOW = "2026-11-23T00:00:00.000000"
EVENTS_PER_APPEND = 100


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.open", description=__doc__)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--against", type=Path, help="a checkout of another version")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    options = parser.parse_args()
    report = asyncio.run(measure(options.events, options.rounds, options.against))
    if options.output == "json":
        json.dump(report, sys.stdout, indent=2)
        return
    for name, figures in report.items():
        print(f"{name:32} {figures['time']:6.2f} s, of which CPU {figures['cpu']:6.2f} s")


async def measure(events: int, rounds: int, against: Path | None) -> dict[str, dict[str, float]]:
    folders = {"now": Path(__file__).parents[1], **({"against": against} if against else {})}
    runs: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="perdure-open-") as name:
        seaweed = await Seaweed.start(Path(name))
        try:
            await seaweed.make_bucket(BUCKET)
            access = S3Access(seaweed.endpoint, seaweed.access_key, seaweed.secret_key, "us-east-1")
            await write_log(access, events)
            for shape in ("segments", "no segments"):
                if shape == "no segments":
                    await delete_segments(access)
                for _ in range(rounds):
                    for version, folder in folders.items():
                        for what, figures in read_with(folder, access, events).items():
                            runs.setdefault(f"{shape}, {what}, {version}", []).append(figures)
        finally:
            await seaweed.stop()
    return {name: _medians(figures) for name, figures in sorted(runs.items())}


def _medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {key: round(statistics.median(run[key] for run in runs), 3) for key in runs[0]}


async def write_log(access: S3Access, events: int) -> None:
    store = S3Store(BUCKET, access=access)
    log = EventLog(store, USER, CONVERSATION, EntryCache(100_000_000))
    for base in range(0, events, EVENTS_PER_APPEND):
        origin = Origin(run="run", activity=str(base))
        await log.append([message_at(base)] * EVENTS_PER_APPEND, base=base, origin=origin)
    from perdure.storage.log.cached_state import encode_cached_state  # older checkouts have none

    state = fold(State(), [summarize(entry) for entry in await log.read(0, events)])
    await log.save_state(encode_cached_state(state))
    await store.close()


def message_at(base: int) -> MessageEvent:
    text = f"{base} " + "what somebody said, at some length; " * 10
    message = Message(role="user", content=(TextContent(text=text),))
    return MessageEvent(timestamp=NOW, source="user", llm_message=message)


async def delete_segments(access: S3Access) -> None:
    store = S3Store(BUCKET, access=access)
    prefix = EventLog(store, USER, CONVERSATION).prefix
    for key in [key async for key in list_keys(store, prefix + SEGMENTS)]:
        await store.delete(key)
    await store.close()


def read_with(folder: Path, access: S3Access, events: int) -> Mapping[str, dict[str, float]]:
    """Read the log in a process with the code of that checkout."""
    words = (access.endpoint_url, access.access_key, access.secret_key, events)
    done = subprocess.run(
        [sys.executable, "-P", "-c", CHILD, __file__, *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    figures: dict[str, dict[str, float]] = json.loads(done.stdout)
    return figures


CHILD = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='child')"


async def read(endpoint: str, key: str, secret: str, events: int) -> None:
    """Read the log in each way, with a cache and connections of its own."""
    report = {}
    for name, work in {"fold": fold_log, "open": open_log}.items():
        store = S3Store(BUCKET, access=S3Access(endpoint, key, secret, "us-east-1"))
        await store.read("warm")
        await store.list("warm")
        log = EventLog(store, USER, CONVERSATION, EntryCache(100_000_000))
        report[name] = await _timed(work, log, events)
        await store.close()
    json.dump(report, sys.stdout)


async def _timed(
    work: Callable[[EventLog], Awaitable[int]], log: EventLog, events: int
) -> dict[str, float]:
    began, cpu = time.perf_counter(), time.process_time()
    assert await work(log) == events, "it reads all of them"
    return {"time": time.perf_counter() - began, "cpu": time.process_time() - cpu}


async def fold_log(log: EventLog) -> int:
    # Every message names the role.
    return (await read_state(log, "user")).next_seq


async def open_log(log: EventLog) -> int:
    await check_integrity(log)
    return (await read_state(log, "nobody")).next_seq


if __name__ == "__main__":
    main()
elif __name__ == "child":
    _, endpoint, key, secret, count = sys.argv
    asyncio.run(read(endpoint, key, secret, int(count)))
