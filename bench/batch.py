"""The cost of a batch beyond its conversations: `python -m bench.batch [-o json]`.

The same conversations, of three answers and two tool calls each, are run by a batch and started one
by one by a client, with as many at a time, in turn on one server and one worker. The difference is
the batch's own: choosing, starting, scoring and recording its samples. Then the history of batches
by how many samples they run at a time, and with `--memory` what their worker holds in memory.
Figures are medians over rounds; only ratios of one run mean anything on a noisy machine.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
from typing import Any

from bench.batch_history import measure_history
from bench.batch_memory import make_table, measure_memory
from bench.batch_stage import QUESTION, BatchEnvironment, Spent, batch_environment
from perdure.agent.spec import Agent

WARM_UP_SAMPLES = 16
"""Samples before the clock starts."""

PARTS = ("overhead", "history", "memory")

SIDES = ("alone", "batch")

FIGURES = ("time_ms", "worker_cpu_ms", "temporal_cpu_ms", "client_cpu_ms")


def per_sample(spent: Spent, samples: int) -> dict[str, float]:
    return {
        "time_ms": 1000 * spent.time / samples,
        "worker_cpu_ms": 1000 * spent.worker / samples,
        "temporal_cpu_ms": 1000 * spent.temporal / samples,
        "client_cpu_ms": 1000 * spent.client / samples,
    }


async def run_conversations(stage: BatchEnvironment, samples: int, concurrency: int) -> Spent:
    """The conversations of a batch, without the batch."""
    spec, room = Agent.model_validate(stage.agent("steps")), asyncio.Semaphore(concurrency)

    async def run_conversation() -> None:
        async with room:
            talk = await stage.client.start(QUESTION, spec)
            outcome = await talk.handle.result()
            assert outcome.status == "finished", outcome.reason

    before = stage.spent()
    await asyncio.gather(*(run_conversation() for _ in range(samples)))
    return stage.spent() - before


async def run_batch(stage: BatchEnvironment, samples: int, concurrency: int) -> Spent:
    before = stage.spent()
    batch = await stage.batch("steps", samples, concurrency)
    progress = await batch.handle.result()
    spent = stage.spent() - before
    right = progress.scores["includes"].mean if progress.scored == samples else None
    assert right == 1.0, progress
    return spent


async def overhead(
    stage: BatchEnvironment, rounds: int, samples: int, concurrency: int
) -> dict[str, Any]:
    runs: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
    await run_conversations(stage, WARM_UP_SAMPLES, concurrency)
    await run_batch(stage, WARM_UP_SAMPLES, concurrency)
    for nth in range(rounds):
        for side in SIDES if nth % 2 == 0 else SIDES[::-1]:
            run = run_conversations if side == "alone" else run_batch
            runs[side].append(per_sample(await run(stage, samples, concurrency), samples))
    for row in runs["alone"] + runs["batch"]:
        row["cpu_ms"] = row["worker_cpu_ms"] + row["temporal_cpu_ms"]
    columns = ("cpu_ms", *FIGURES)
    return {
        "rounds": rounds,
        "samples": samples,
        "concurrency": concurrency,
        "load": os.getloadavg()[1],
        "per_sample": {
            side: {name: statistics.median(row[name] for row in runs[side]) for name in columns}
            for side in SIDES
        },
        "overhead": {name: overheads(runs, name) for name in columns if name != "client_cpu_ms"},
    }


def overheads(runs: dict[str, list[dict[str, float]]], name: str) -> list[float]:
    """Compute by how much longer a batch took than its conversations, as a share, by round."""
    pairs = zip(runs["batch"], runs["alone"], strict=True)
    return [batch[name] / bare[name] - 1 for batch, bare in pairs]


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    report: dict[str, Any] = {}
    async with batch_environment() as stage:
        if "overhead" in options.parts:
            report["overhead"] = await overhead(
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


def show(report: dict[str, Any]) -> None:
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


def _show_overhead(overhead: dict[str, Any]) -> None:
    print(
        f"{overhead['rounds']} rounds of {overhead['samples']} samples of three answers, "
        f"{overhead['concurrency']} at a time, at a load of {overhead['load']:.1f}"
    )
    columns = list(overhead["per_sample"]["batch"])
    print(f"{'a sample':12}" + "".join(f"{name:>18}" for name in columns))
    for side, row in overhead["per_sample"].items():
        print(f"{side:12}" + "".join(f"{row[name]:18.1f}" for name in columns))
    for name, ratios in overhead["overhead"].items():
        rounds = " ".join(f"{ratio:+.1%}" for ratio in ratios)
        print(f"overhead, {name:18} {statistics.median(ratios):+.1%}   ({rounds})")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.batch", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=PARTS, default=PARTS[:2])
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--samples", type=int, default=100, help="of each side of a round")
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--long", type=int, default=600, help="samples of a history")
    parser.add_argument("--windows", type=int, nargs="+", default=[8, 16, 32])
    parser.add_argument("--memory", type=int, default=5000, help="samples, at most 20,000")
    options = parser.parse_args()
    report = asyncio.run(measure(options))
    if options.output == "json":
        json.dump(report, sys.stdout, indent=2)
    else:
        show(report)


if __name__ == "__main__":
    main()
