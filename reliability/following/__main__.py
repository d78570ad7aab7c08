"""`python -m reliability.following`: follow while workers, gateways and Temporal are killed."""

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from time import monotonic
from typing import Any

from reliability.chaos.evidence import evidence_folder
from reliability.following.load import Load
from reliability.following.stage import Stage, open_stage

EVERY = 5.0
"""Seconds from one kill of a kind to the next."""

WORKERS = 3


async def run(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run the load while things are killed; return the report."""
    async with open_stage(folder, options.seed, WORKERS) as stage:
        load, began = Load(stage), monotonic()
        stop, over = asyncio.Event(), asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            lanes = [
                tasks.create_task(load.run_lane(lane, options.seed, stop))
                for lane in range(options.conversations)
            ]
            for kill_all in make_killers(stage, load, over, random.Random(options.seed)):
                tasks.create_task(kill_all)
            await asyncio.sleep(options.seconds)
            stop.set()
            await asyncio.gather(*lanes)
            over.set()
        load.findings += stage.workers.crash_outputs
        return {
            "seed": options.seed,
            "seconds": round(monotonic() - began),
            "counts": dict(sorted(load.counts.items())),
            "findings": load.findings,
        }


def make_killers(
    stage: Stage, load: Load, over: asyncio.Event, chance: random.Random
) -> list[Coroutine[None, None, None]]:
    """Make what kills each kind of process every few seconds, and starts it again."""

    async def kill_worker() -> None:
        await stage.workers.kill(chance.choice(list(stage.workers.workers)))

    async def kill_gateway() -> None:
        gateway = chance.choice(stage.gateways)
        await gateway.kill()
        await gateway.start()

    async def kill_temporal() -> None:
        await stage.temporal.kill()
        await stage.temporal.start()

    async def keep_killing(name: str, first: float, kill: Callable[[], Awaitable[None]]) -> None:
        pause = first
        while not await is_set_within(over, pause):
            killed = monotonic()
            await kill()
            load.counts[f"{name} killed"] += 1
            pause = max(0.1, EVERY - (monotonic() - killed))

    kinds = {"worker": kill_worker, "gateway": kill_gateway, "temporal": kill_temporal}
    return [
        keep_killing(name, EVERY * (1 + nth / len(kinds)), kill)
        for nth, (name, kill) in enumerate(kinds.items())
    ]


async def is_set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


def main() -> None:
    """Exit code 0 means that each client got each event once, and that each turn ended."""
    parser = argparse.ArgumentParser(prog="python -m reliability.following", description=__doc__)
    parser.add_argument("--short", action="store_true", help="for every change")
    parser.add_argument("--seconds", type=float, help="from the first message to the last kills")
    parser.add_argument("--conversations", type=int, default=4, help="at a time")
    parser.add_argument("--seed", type=int, help="decides all that chance decides here")
    parser.add_argument("--keep", action="store_true", help="keep logs and stored objects")
    options = parser.parse_args()
    if options.seconds is None:
        options.seconds = 30.0 if options.short else 600.0
    if options.seed is None:
        options.seed = random.randrange(1_000_000)
    print(f"seed {options.seed}", file=sys.stderr)
    with evidence_folder(options.keep) as evidence:
        report = asyncio.run(run(options, evidence.path))
        evidence.keep |= bool(report["findings"])
    print(json.dumps(report, indent=2))
    sys.exit(1 if report["findings"] else 0)


if __name__ == "__main__":
    main()
