"""The cost of a conversation of one answer: `python -m bench.one [-o json]`.

`--count` conversations a run, `--concurrency` at a time, beside workflows of three and of one
activity that do nothing, on the same server; the run of three is the floor before and after every
other run. The time includes the second for which a workflow stays after its answer, so CPU is what
counts. Then the operations on the store that one such conversation takes, by their kind and key.
"""

import argparse
from functools import partial
from typing import Any

from bench.command import add_against, add_shapes, at_least, make_parser, run_bench, shapes_of
from bench.plan import plan_runs, start_sides
from bench.rounds import Row, RunOnce, report_trials, run_rounds, show_trials
from bench.servers import start_servers
from bench.shapes import Shape
from bench.sides import Side, scripts_for, start_floor
from bench.store_operations import count_operations

FLOOR_ACTIVITIES = 3
"""Opening, answering and saving."""

DEFAULT_SHAPES = (Shape(), Shape(on_s3=True))


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    shapes = shapes_of(options, DEFAULT_SHAPES)
    count, concurrency = options.count, options.concurrency
    async with (
        start_servers(scripts_for(0)) as servers,
        start_floor(servers) as floor,
        start_sides(servers, options.trees, shapes) as sides,
    ):

        async def measure_shape(side: Side, shape: Shape) -> Row:
            return (await side.run(shape, 0, count, concurrency)).per(count)

        async def measure_floor(activities: int) -> Row:
            return (await floor.run_floor(activities, count, concurrency)).per(count)

        runs: dict[str, RunOnce] = {"floor of 1 activity": partial(measure_floor, 1)}
        runs |= plan_runs(sides, shapes, measure_shape)
        bare = partial(measure_floor, FLOOR_ACTIVITIES)
        trials = await run_rounds(options.rounds, runs, bare)
        operations = await count_operations(servers)
    sizes = {"rounds": options.rounds, "count": count, "concurrency": concurrency}
    return {**sizes, **report_trials(trials), "store_operations": operations}


def show(report: dict[str, Any]) -> None:
    print(
        f"{report['rounds']} rounds of {report['count']} conversations of one answer, "
        f"{report['concurrency']} at a time; the floor has {FLOOR_ACTIVITIES} activities"
    )
    show_trials(report, "a conversation")
    operations = report["store_operations"]
    print(f"{sum(operations.values())} operations on the store:")
    for name, times in operations.items():
        print(f"{times:4}  {name}")


def main() -> None:
    parser = make_parser("bench.one", __doc__, rounds=5)
    parser.add_argument("--count", type=at_least(1), default=48)
    parser.add_argument("--concurrency", type=at_least(1), default=16)
    add_shapes(parser)
    add_against(parser)
    run_bench(parser, measure, show)


if __name__ == "__main__":
    main()
