"""Many conversations at once: `python -m bench.many [-o json]`.

Every number of `--conversations` runs with every number of `--workers` processes, beside the floor
with as many of both, before and after: steps a second, CPU a step, the time of a step and the
memory of a worker. The time of a step is that between the ends of two of a conversation.
"""

import argparse
from functools import partial
from typing import Any

from bench.command import add_against, add_shapes, at_least, make_parser, run_bench, shapes_of
from bench.figures import percentile
from bench.floor import ACTIVITIES_PER_STEP
from bench.plan import plan_runs, start_sides
from bench.rounds import Row, report_trials, run_rounds, show_trials
from bench.servers import Servers, start_servers
from bench.shapes import Shape
from bench.sides import Run, Side, scripts_for, start_floor

DEFAULT_SHAPES = (Shape(), Shape(on_s3=True), Shape(brief=True), Shape(on_s3=True, brief=True))


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    sizes = []
    async with start_servers(scripts_for(options.steps)) as servers:
        for workers in options.workers:
            sizes += await measure_workers(servers, workers, options)
    return {"steps": options.steps, "rounds": options.rounds, "sizes": sizes}


async def measure_workers(
    servers: Servers, workers: int, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Measure every number of conversations with so many worker processes."""
    shapes, reports = shapes_of(options, DEFAULT_SHAPES), []
    async with (
        start_floor(servers, workers) as floor,
        start_sides(servers, options.trees, shapes, workers) as sides,
    ):
        for count in options.conversations:
            runs = plan_runs(sides, shapes, partial(measure_shape, options.steps, count))
            bare = partial(measure_floor, options.steps, count, floor)
            trials = await run_rounds(options.rounds, runs, bare)
            size = {"conversations": count, "workers": workers}
            reports.append(size | report_trials(trials))
    return reports


async def measure_shape(steps: int, count: int, side: Side, shape: Shape) -> Row:
    return make_row(await side.run(shape, steps, count, count), steps)


async def measure_floor(steps: int, count: int, side: Side) -> Row:
    return make_row(await side.run_floor(ACTIVITIES_PER_STEP * steps, count, count), steps)


def make_row(run: Run, steps: int) -> Row:
    """Return the figures of a step; memory is that of the worker that had most."""
    count, times = steps * len(run.conversations), run.step_times()
    return run.per(count) | {
        "steps_per_s": count / run.duration,
        "p50_ms": 1000 * percentile(times, 0.5),
        "p95_ms": 1000 * percentile(times, 0.95),
        "worker_mb": max(run.samples.memory) / 1e6,
    }


def show(report: dict[str, Any]) -> None:
    print(f"{report['rounds']} rounds of {report['steps']} steps a conversation")
    for size in report["sizes"]:
        print(
            f"\n{size['conversations']} conversations at once, worker processes: {size['workers']}"
        )
        show_trials(size, "a step")


def main() -> None:
    parser = make_parser("bench.many", __doc__, rounds=3)
    parser.add_argument("--conversations", type=at_least(1), nargs="+", default=[50, 500])
    parser.add_argument("--workers", type=at_least(1), nargs="+", default=[1, 4])
    parser.add_argument("--steps", type=at_least(2), default=20, help="of each conversation")
    add_shapes(parser)
    add_against(parser)
    run_bench(parser, measure, show)


if __name__ == "__main__":
    main()
