"""Beside Inspect: `python -m bench.inspect_side [answer] [agent]`, after `make validators`.

The same scripted samples in Inspect with its mock model and in a batch with a model in process, in
turn: what a call of the model takes, and what a SIGKILL of all that works costs when half of the
calls are made. A sample is one question with a fixed answer, or an agent that calls a tool a few
times before it answers; that agent is Inspect's `react` without checkpoints and with one before
each call of the model (`turn:1`). For these Inspect needs restic, which it downloads.

Inspect runs in one process and keeps its log in a file; a batch has a server and a worker, which
have to be running, and are warm. Only ratios of one run mean anything on a noisy machine.
"""

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from bench.command import Report, add_parts, at_least, make_parser, run_bench
from bench.figures import median_row
from bench.inspect_calls import Workload
from bench.inspect_ours import PerdureSide
from bench.inspect_theirs import InspectSide, missing_checkpoints
from tests.exports.validators_environment import VALIDATORS

PARTS = ("answer", "agent")

Side: TypeAlias = InspectSide | PerdureSide
Row: TypeAlias = dict[str, float]


async def measure(options: argparse.Namespace) -> Report:
    report: Report = {
        name: getattr(options, name) for name in ("samples", "at_a_time", "rounds", "kills")
    }
    async with all_sides(options.at_a_time) as sides:
        for part in options.parts:
            work = Workload(options.samples, options.tool_calls if part == "agent" else 0)
            report[part] = await measure_part(sides, work, options)
    return report


@contextlib.asynccontextmanager
async def all_sides(at_a_time: int) -> AsyncIterator[dict[str, Side]]:
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as name:
        theirs = Path(name) / "theirs"
        async with PerdureSide.started(Path(name) / "ours", at_a_time) as ours:
            yield {
                "inspect": InspectSide(theirs, at_a_time),
                "checkpoints": InspectSide(theirs, at_a_time, checkpoints=True),
                "perdure": ours,
            }


async def measure_part(
    sides: dict[str, Side], work: Workload, options: argparse.Namespace
) -> Report:
    """Measure the samples of one kind; only an agent has checkpoints."""
    missing = missing_checkpoints() if work.tool_calls else ""
    sides = {name: side for name, side in sides.items() if name != "checkpoints" or missing is None}
    await sides["perdure"].measured(  # what is loaded once is no call's cost
        Workload(options.at_a_time, work.tool_calls)
    )
    calm = await in_turn(options.rounds, sides, lambda side: side.measured(work))
    killed = await in_turn(options.kills, sides, lambda side: side.killed(work))
    return {
        "calls_a_sample": work.tool_calls + 1,
        "load": os.getloadavg()[1],
        "not_checked": missing or None,
        "undisturbed": {side: median_row(rows) for side, rows in calm.items() if rows},
        "killed": {side: median_row(rows) for side, rows in killed.items() if rows},
        "rounds": {"undisturbed": calm, "killed": killed},
    }


async def in_turn(
    rounds: int, sides: dict[str, Side], run: Callable[[Side], Awaitable[Row]]
) -> dict[str, list[Row]]:
    """Run each side once a round, in the opposite order in every other round."""
    rows: dict[str, list[Row]] = {name: [] for name in sides}
    for nth in range(rounds):
        for name in list(sides)[:: 1 if nth % 2 == 0 else -1]:
            rows[name].append(await run(sides[name]))
    return rows


def show(report: Report) -> None:
    print(
        f"{report['samples']} samples, {report['at_a_time']} at a time; medians of "
        f"{report['rounds']} rounds and {report['kills']} kills"
    )
    for part in (report[name] for name in PARTS if name in report):
        calls = part["calls_a_sample"]
        print(f"\n{calls} {'calls' if calls > 1 else 'call'} of the model a sample, ", end="")
        print(f"at a load of {part['load']:.1f}")
        if part["not_checked"]:
            print(f"NOT CHECKED: Inspect with checkpoints. {part['not_checked']}")
        for title in ("undisturbed", "killed"):
            show_table(title, part[title])


def show_table(title: str, sides: dict[str, Row]) -> None:
    print(f"{title:28}" + "".join(f"{side:>14}" for side in sides))
    for name in next(iter(sides.values()), ()):
        print(f"  {name:26}" + "".join(f"{row[name]:14.2f}" for row in sides.values()))


def main() -> None:
    parser = make_parser("bench.inspect_side", __doc__, rounds=3)
    add_parts(parser, PARTS, PARTS)
    parser.add_argument("--kills", type=at_least(0), default=3)
    parser.add_argument("--samples", type=at_least(1), default=500)
    parser.add_argument("--tool-calls", type=at_least(1), default=3, help="of an agent's sample")
    parser.add_argument("--at-a-time", type=at_least(1), default=16)
    if not VALIDATORS.ready():
        sys.exit("NOT CHECKED: there is no inspect_ai here. See what `make validators` says.")
    run_bench(parser, measure, show)


if __name__ == "__main__":
    main()
