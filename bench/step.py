"""The cost of a step against the floor of the same run: `python -m bench.step [-o json]`.

A step is a think and an act: the model is asked and answers with one tool call, the tool runs. The
floor is a bare workflow with two activities that do nothing, on the same server; it runs before and
after every other run. Workers and clients are processes of their own: `own` is the workers' CPU.
With `--against`, another checkout runs the same shapes in turn with this one, on the same servers;
with `--telemetry` the other is this one with telemetry off, and this one sends to a collector.
Only ratios of one run mean anything on a noisy machine: those of the medians of all rounds, and the
median of the ratios of a run to the mean of the floors on both its sides, with the least and the
greatest of them.
"""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import temporalio.client

from bench.collector import start_collector
from bench.command import add_against, add_shapes, at_least, make_parser, run_bench, shapes_of
from bench.floor import ACTIVITIES_PER_STEP
from bench.plan import plan_runs, start_sides
from bench.rounds import Row, report_trials, run_rounds, show_trials
from bench.servers import start_servers
from bench.shapes import BRIEF_SHAPES, SHAPES, Shape
from bench.sides import Run, Side, Tree, scripts_for, start_floor
from bench.workflow_runs import walk_runs


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    shapes = shapes_of(options, (*SHAPES, *(BRIEF_SHAPES if options.brief else ())))
    async with (
        start_servers(scripts_for(options.steps)) as servers,
        start_floor(servers) as floor,
        AsyncExitStack() as stack,
    ):
        trees = stack.enter_context(measure_telemetry()) if options.telemetry else options.trees
        sides = await stack.enter_async_context(start_sides(servers, trees, shapes))
        temporal = await temporalio.client.Client.connect(servers.temporal.address)

        async def measure_shape(side: Side, shape: Shape) -> Row:
            return await make_row(temporal, await side.run(shape, options.steps), options.steps)

        async def measure_floor() -> Row:
            run = await floor.run_floor(ACTIVITIES_PER_STEP * options.steps)
            return await make_row(temporal, run, options.steps)

        runs = plan_runs(sides, shapes, measure_shape)
        trials = await run_rounds(options.rounds, runs, measure_floor)
    return {"steps": options.steps, "rounds": options.rounds, **report_trials(trials)}


@contextmanager
def measure_telemetry() -> Iterator[Sequence[Tree]]:
    """Yield this checkout without telemetry, and with it."""
    with start_collector() as endpoint:
        yield Tree("before"), Tree(variables=(("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint),))


async def make_row(temporal: temporalio.client.Client, run: Run, steps: int) -> Row:
    """Return milliseconds, and the bytes and events of the histories of all runs, a step."""
    [conversation] = run.conversations
    history = {"bytes": 0, "events": 0}
    async for handle in walk_runs(temporal, conversation["workflow_id"]):
        info = (await handle.describe()).raw_description.workflow_execution_info
        history["bytes"] += info.history_size_bytes
        history["events"] += info.history_length
    return run.per(steps) | {f"history_{name}": size / steps for name, size in history.items()}


def show(report: dict[str, Any]) -> None:
    print(f"{report['rounds']} rounds of {report['steps']} steps; a step is a think and an act")
    show_trials(report, "a step")


def main() -> None:
    parser = make_parser("bench.step", __doc__, rounds=5)
    parser.add_argument("--steps", type=at_least(1), default=50)
    parser.add_argument("--brief", action="store_true", help="also the shapes with a brief tool")
    add_shapes(parser)
    kinds = parser.add_mutually_exclusive_group()
    add_against(kinds)
    kinds.add_argument("--telemetry", action="store_true", help="on, in turn with off")
    run_bench(parser, measure, show)


if __name__ == "__main__":
    main()
