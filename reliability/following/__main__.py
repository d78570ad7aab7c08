"""`python -m reliability.following`: follow while workers, gateways and Temporal are killed."""

import argparse
import asyncio
import random
from pathlib import Path
from time import monotonic
from typing import Any

from reliability.chaos.command_line import new_parser, parse_options, run_harness
from reliability.following.killers import make_killers
from reliability.following.load import Load
from reliability.following.stage import open_stage

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
            for kill_all in make_killers(stage, load.counts, over, random.Random(options.seed)):
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


def main() -> None:
    """Exit code 0 means that each client got each event once, and that each turn ended."""
    parser = new_parser("reliability.following", __doc__)
    parser.add_argument("--seconds", type=float, help="from the first message to the last kills")
    parser.add_argument("--conversations", type=int, default=4, help="at a time")
    options = parse_options(parser)
    if options.seconds is None:
        options.seconds = 30.0 if options.short else 600.0
    run_harness(lambda folder: run(options, folder), options.keep)


if __name__ == "__main__":
    main()
