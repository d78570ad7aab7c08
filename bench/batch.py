"""The cost of a batch beyond its conversations: `python -m bench.batch [-o json]`.

The same conversations, of three answers and two tool calls and of one answer, are run by a batch
and started one by one by a client, with as many at a time, in turn on one server and one worker.
The difference is the batch's own: choosing, starting, scoring and recording its samples. Then the
history of batches by how many samples they run at a time, and with `memory` what their worker
holds in memory. Figures are medians over rounds; only ratios of one run mean anything on a noisy
machine.
"""

import argparse
import asyncio
import os
from dataclasses import asdict
from typing import TypeAlias

from bench.batch_history import measure_history
from bench.batch_memory import make_table, measure_memory
from bench.batch_stage import QUESTION, SCRIPTS, BatchEnvironment, batch_environment
from bench.command import Report, add_parts, at_least, make_parser, run_bench
from bench.cost import Cost
from bench.figures import compare_runs, median_row
from perdure.agent.spec import Agent

WARM_UP_SAMPLES = 16
"""Samples before the clock starts."""

PARTS = ("overhead", "history", "memory")

SIDES = ("alone", "batch")

FIGURES = ("cpu_ms", "time_ms", "own_cpu_ms", "temporal_cpu_ms", "client_cpu_ms")
"""Of a sample; `own` is the worker's."""

Runs: TypeAlias = dict[str, list[dict[str, float]]]
"""The costs of a sample by side, a row a round."""


async def run_conversations(
    stage: BatchEnvironment, script: str, samples: int, concurrency: int
) -> Cost:
    """The conversations of a batch, without the batch."""
    spec, room = Agent.model_validate(stage.agent(script)), asyncio.Semaphore(concurrency)

    async def run_conversation() -> None:
        async with room:
            talk = await stage.client.start(QUESTION, spec)
            outcome = await talk.handle.result()
            assert outcome.status == "finished", outcome.reason

    before = stage.cost()
    await asyncio.gather(*(run_conversation() for _ in range(samples)))
    return stage.cost() - before


async def run_batch(stage: BatchEnvironment, script: str, samples: int, concurrency: int) -> Cost:
    before = stage.cost()
    batch = await stage.batch(script, samples, concurrency)
    progress = await batch.handle.result()
    cost = stage.cost() - before
    right = progress.scores["includes"].mean if progress.scored == samples else None
    assert right == 1.0, progress
    return cost


async def measure_overhead(
    stage: BatchEnvironment, rounds: int, samples: int, concurrency: int
) -> Report:
    """Measure both sides of each script in turn, in the opposite order in every other round."""
    runs: dict[str, Runs] = {script: {side: [] for side in SIDES} for script in SCRIPTS}
    for script in SCRIPTS:
        await run_conversations(stage, script, WARM_UP_SAMPLES, concurrency)
        await run_batch(stage, script, WARM_UP_SAMPLES, concurrency)
    for nth in range(rounds):
        for script in SCRIPTS:
            for side in SIDES if nth % 2 == 0 else SIDES[::-1]:
                run = run_conversations if side == "alone" else run_batch
                cost = await run(stage, script, samples, concurrency)
                runs[script][side].append(cost.per(samples))
    return {
        "rounds": rounds,
        "samples": samples,
        "concurrency": concurrency,
        "load": os.getloadavg()[1],
        "scripts": {script: compare_sides(sides) for script, sides in runs.items()},
    }


def compare_sides(runs: Runs) -> Report:
    """Return each side's medians, and what a batch takes beside its conversations."""
    ratios = {
        name: asdict(compare_runs(*([row[name] for row in runs[side]] for side in SIDES[::-1])))
        for name in FIGURES
    }
    medians = {side: median_row(rows) for side, rows in runs.items()}
    return {"per_sample": medians, "ratios": ratios, "rounds": runs}


async def measure(options: argparse.Namespace) -> Report:
    report: Report = {}
    async with batch_environment() as stage:
        if "overhead" in options.parts:
            report["overhead"] = await measure_overhead(
                stage, options.rounds, options.samples, options.concurrency
            )
        if "history" in options.parts:
            report["history"] = [
                (await measure_history(stage, options.long, concurrency)).report()
                for concurrency in options.windows
            ]
        if "memory" in options.parts:
            seen = await measure_memory(stage, options.memory, options.concurrency)
            report["memory"] = make_table(seen)
    return report


def show(report: Report) -> None:
    if overhead := report.get("overhead"):
        _show_overhead(overhead)
    for row in report.get("history", ()):
        print(
            f"history: {row['samples']} samples, {row['concurrency']} at a time: "
            f"{row['events_per_sample']:.2f} events a sample in {len(row['runs'])} runs; "
            f"of each run {', '.join(f'{item:.2f}' for item in row['of_each_run'])}"
        )
        for kind, events in row["by_kind"].items():
            print(f"    {kind:52}{events:8.3f}")
    for row in report.get("memory", ()):
        print(
            f"memory: {row['finished']:8} samples  worker {row['worker_mb']:7.1f} MB  "
            f"Temporal {row['temporal_mb']:7.1f} MB  "
            f"worker's CPU {row['cpu_ms']:7.1f} ms a sample  "
            f"{row['per_second']:6.2f} samples a second"
        )


def _show_overhead(overhead: Report) -> None:
    print(
        f"{overhead['rounds']} rounds of {overhead['samples']} samples, "
        f"{overhead['concurrency']} at a time, at a load of {overhead['load']:.1f}"
    )
    for script, compared in overhead["scripts"].items():
        answers = len(SCRIPTS[script]["answers"])
        title = f"{answers} {'answers' if answers > 1 else 'answer'} a sample"
        print(f"{title:22}" + "".join(f"{name:>17}" for name in FIGURES))
        for side, row in compared["per_sample"].items():
            print(f"  {side:20}" + "".join(f"{row[name]:17.1f}" for name in FIGURES))
        ratios = [compared["ratios"][name] for name in FIGURES]
        print(f"  {'batch / alone':20}" + "".join(f"{ratio['medians']:17.2f}" for ratio in ratios))
        for label in ("median", "low", "high"):
            title = f"pairs, {label}"
            print(f"    {title:18}" + "".join(f"{r['paired'][label]:17.2f}" for r in ratios))


def main() -> None:
    parser = make_parser("bench.batch", __doc__, rounds=5)
    add_parts(parser, PARTS, PARTS[:2])
    parser.add_argument("--samples", type=at_least(1), default=100, help="of each side of a round")
    parser.add_argument("--concurrency", type=at_least(1), default=16)
    parser.add_argument("--long", type=at_least(1), default=600, help="samples of a history")
    parser.add_argument("--windows", type=at_least(1), nargs="+", default=[8, 16, 32])
    parser.add_argument("--memory", type=at_least(1), default=5000, help="samples, at most 20,000")
    run_bench(parser, measure, show)


if __name__ == "__main__":
    main()
