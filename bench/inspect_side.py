"""Beside Inspect: `python -m bench.inspect_side [-o json]`, after `make validators`.

The same scripted samples, one question with a fixed answer each, in Inspect with its mock model and
in a batch with a model in process, in turn: what a call of the model takes, and what a SIGKILL of
all that works costs when half of the calls are made. Inspect runs in one process and keeps its log
in a file; a batch has a server and a worker, which have to be running, and are warm. Only ratios of
one run mean anything on a noisy machine.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.inspect_ours import PerdureSide
from bench.inspect_theirs import InspectSide
from tests.exports.validators_environment import MISSING, VALIDATORS

SIDES = ("inspect", "perdure")


async def measure(rounds: int, kills: int, samples: int, at_a_time: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as name:
        async with PerdureSide.started(Path(name) / "ours", at_a_time) as ours:
            theirs = InspectSide(Path(name) / "theirs", at_a_time)
            sides: dict[str, InspectSide | PerdureSide] = {"inspect": theirs, "perdure": ours}
            await ours.measured(at_a_time)  # what is loaded once is no call's cost
            calm = await _in_turn(rounds, lambda side: sides[side].measured(samples))
            killed = await _in_turn(kills, lambda side: sides[side].killed(samples))
    return {
        "samples": samples,
        "at_a_time": at_a_time,
        "rounds": rounds,
        "kills": kills,
        "load": os.getloadavg()[1],
        "undisturbed": _medians(calm),
        "killed": _medians(killed),
    }


async def _in_turn(rounds: int, run: Any) -> dict[str, list[dict[str, float]]]:
    rows: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
    for nth in range(rounds):
        for side in SIDES if nth % 2 == 0 else SIDES[::-1]:
            rows[side].append(await run(side))
    return rows


def _medians(rows: dict[str, list[dict[str, float]]]) -> dict[str, dict[str, float]]:
    return {
        side: {name: statistics.median(row[name] for row in each) for name in each[0]}
        for side, each in rows.items()
        if each
    }


def show(report: dict[str, Any]) -> None:
    print(
        f"{report['samples']} samples, {report['at_a_time']} at a time; medians of "
        f"{report['rounds']} rounds and {report['kills']} kills, at a load of {report['load']:.1f}"
    )
    for title in ("undisturbed", "killed"):
        sides = report[title]
        names = list(next(iter(sides.values()), ()))
        print(f"{title:28}" + "".join(f"{side:>12}" for side in sides))
        for name in names:
            print(f"  {name:26}" + "".join(f"{sides[side][name]:12.2f}" for side in sides))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.inspect_side", description=__doc__)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--at-a-time", type=int, default=16)
    options = parser.parse_args()
    if not VALIDATORS.ready():
        sys.exit(MISSING)
    report = asyncio.run(measure(options.rounds, options.kills, options.samples, options.at_a_time))
    if options.output == "json":
        json.dump(report, sys.stdout, indent=2)
    else:
        show(report)


if __name__ == "__main__":
    main()
