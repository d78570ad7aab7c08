"""The memories of users: `python -m bench.memory [scale] [ingestion] [quality] [-o json]`.

`scale`: 100,000 memories of 50 users in SeaweedFS: puts, searches beside a plain scan, results of
other users, and the index deleted and made anew. `ingestion`: a conversation is ingested by
processes that are killed. `quality`: how often questions of BFCL find the turn with their answer,
by full text, by the vectors of a small model, and by both; without the packages it is left out.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

from bench.command import add_parts, at_least, make_parser, run_bench
from bench.memory.ingesting import measure_ingestion
from bench.memory.quality import load_people, measure_quality
from bench.memory.scale import Plan, measure_scale
from perdure.embedded.seaweed import Seaweed
from perdure.storage.s3 import S3Store
from perdure.storage.store import S3Access

PARTS = ("scale", "ingestion", "quality")


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    report: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="perdure-memory-") as name:
        folder = Path(name)
        if "scale" in options.parts:
            plan = Plan(options.users, options.memories, options.searches)
            report["scale"] = await measure_on_seaweed(folder / "seaweed", plan)
        if "ingestion" in options.parts:
            report["ingestion"] = await measure_ingestion(folder / "ingestion", options.turns)
        if "quality" in options.parts:
            try:
                report["quality"] = await measure_quality(folder / "quality", load_people())
            except FileNotFoundError as error:
                report["quality"] = f"not measured: {error}"
    return report


async def measure_on_seaweed(folder: Path, plan: Plan) -> dict[str, Any]:
    seaweed = await Seaweed.start(folder)
    try:
        await seaweed.make_bucket("bench")
        access = S3Access(seaweed.endpoint, seaweed.access_key, seaweed.secret_key, "us-east-1")
        store = S3Store("bench", access=access)
        report = await measure_scale(store, plan)
        await store.close()
        return report
    finally:
        await seaweed.stop()


def show(report: dict[str, Any], indent: str = "") -> None:
    for name, value in report.items():
        if isinstance(value, dict):
            print(f"{indent}{name}")
            show(value, f"{indent}  ")
        else:
            print(f"{indent}{name:<{34 - len(indent)}}{value}")


def main() -> None:
    parser = make_parser("bench.memory", __doc__)
    add_parts(parser, PARTS, PARTS)
    parser.add_argument("--users", type=at_least(1), default=50)
    parser.add_argument("--memories", type=at_least(20), default=2000, help="of each user")
    parser.add_argument("--searches", type=at_least(1), default=10_000)
    parser.add_argument("--turns", type=at_least(1), default=2000, help="of what is ingested")
    run_bench(parser, measure, show)


if __name__ == "__main__":
    main()
