"""Whether a step costs more at the end of a conversation: `python -m bench.drift [-o json]`.

CPU a step, ours and Temporal's, in each tenth of a conversation of `--steps` steps, and the last
tenth over the first. Every shape is run in every round; the figures are medians over rounds. Unless
a shape has a condenser, nothing is condensed, and the model's messages grow all along. `--against`
measures another checkout in turn.
"""

import argparse
import os
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from bench.command import add_against, add_shapes, at_least, make_parser, run_bench, shapes_of
from bench.figures import TENTHS, Spread, measure_spread
from bench.plan import plan_runs, start_sides
from bench.rounds import reorder
from bench.servers import start_servers
from bench.shapes import CONDENSER_SHAPES, SHAPES, Shape
from bench.sides import Side, scripts_for
from bench.tenths import drifts, report_tenths, show_tenths

DEFAULT_SHAPES = (*SHAPES, CONDENSER_SHAPES[0], CONDENSER_SHAPES[-1])


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    shapes, rounds = shapes_of(options, DEFAULT_SHAPES), options.rounds
    reports: dict[str, list[dict[str, Any]]] = {}
    loads = []
    async with (
        start_servers(scripts_for(options.steps)) as servers,
        start_sides(servers, options.trees, shapes) as sides,
    ):
        runs = plan_runs(sides, shapes, partial(measure_tenths, options.steps))
        for nth in range(rounds):
            for name, run in reorder(runs, nth):
                reports.setdefault(name, []).append(await run())
                loads.append(os.getloadavg()[0])
            print(f"round {nth + 1} of {rounds} is done", file=sys.stderr, flush=True)
    shown = {name: report_runs(reports[name]) for name in runs}
    load = asdict(measure_spread(loads))
    return {"steps": options.steps, "rounds": rounds, "load": load, "shapes": shown}


async def measure_tenths(steps: int, side: Side, shape: Shape) -> dict[str, Any]:
    fields: dict[str, Any] = {} if shape.condenses else {"condenser": {"kind": "none"}}
    run = await side.run(shape, steps, **fields)
    [conversation] = run.conversations
    return report_tenths(conversation["steps"], run.samples)


def report_runs(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the medians of each tenth and of the drifts, and the runs."""
    ratios = [drifts(run) for run in runs]
    return {
        "tenths": {
            name: [statistics.median(run[name][nth] for run in runs) for nth in range(TENTHS)]
            for name in runs[0]
        },
        "drift": {
            name: asdict(measure_spread([row[name] for row in ratios])) for name in ratios[0]
        },
        "runs": list(runs),
    }


def show(report: dict[str, Any]) -> None:
    load = Spread(**report["load"])
    print(f"{report['rounds']} rounds of {report['steps']} steps at a load of {load}")
    print("CPU a step by tenth, ms; then the last tenth over the first, with least and greatest")
    for name, shape in report["shapes"].items():
        for part in ("own_cpu_ms", "temporal_cpu_ms", "cpu_ms"):
            show_tenths(f"{name}: {part}", shape["tenths"][part])
        ratios = (f"{part} {Spread(**row)!s}" for part, row in shape["drift"].items())
        print(f"{name}: drift of {', '.join(ratios)}")


def main() -> None:
    parser = make_parser("bench.drift", __doc__, rounds=3)
    parser.add_argument("--steps", type=at_least(TENTHS + 1), default=500)
    add_shapes(parser)
    add_against(parser)
    run_bench(parser, measure, show)


if __name__ == "__main__":
    main()
