"""Kill a worker at every point: `python -m reliability.crashes [--every N] [--only TEXT]`.

A conversation is held undisturbed first: what its worker passes are the points. Then each point and
harm has a conversation of its own, whose log must tell the same. Another conversation, whose brief
steps are local activities, follows in the same way, and one that starts with a clone, two MCP
servers and five secrets of its user, and goes on with the state it shares and with memories.
"""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from temporalio.service import RPCError

from perdure.embedded.seaweed import Seaweed
from perdure.embedded.temporal import TemporalServer
from perdure.errors import PerdureError
from perdure.storage.store import S3Access
from perdure.temporal.connect import connect
from reliability.crashes.bills import count_repaid
from reliability.crashes.case import CaseResult, Environment, make_environment, run_case
from reliability.crashes.cases import Case, begin_cases, choose_kinds, list_cases
from reliability.crashes.checks import FinishedConversation, find_violations, read_conversation
from reliability.crashes.scenario import Shape
from tests.git_server import serve_git

HEARTBEAT_TIMEOUT = 2.0
"""Seconds of silence after which a worker is taken for lost: on a busy machine some are silent."""

BUCKET = "crashes"

SHAPES: tuple[Shape, ...] = ("ordinary", "local", "start")

MIN_REACHED_SHARE = 0.9
"""Where fewer cases come to their point, the points are not what a conversation passes."""


@dataclass
class Report:
    """The results of the cases; `wrong` has the faults, case by case."""

    points: int = 0
    cases: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)
    lost: int = 0
    repaid_responses: int = 0
    false_alarms: int = 0
    """Those of them that were paid for again as a worker which lived was silent for too long."""
    violations: dict[str, list[str]] = field(default_factory=dict)


def main() -> int:
    options = _arguments()
    folder, began = Path(tempfile.mkdtemp(prefix="crashes-")), time.monotonic()
    report = asyncio.run(run(options, folder))
    print_report(report, time.monotonic() - began)
    if report.violations:
        print(f"What they left behind is in {folder}.")
        return 1
    shutil.rmtree(folder)
    return 1 if report.reached.total() < MIN_REACHED_SHARE * report.cases.total() else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m reliability.crashes", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="play only each Nth case (1)")
    parser.add_argument("--short", action="store_true", help="play a few cases of each kind")
    parser.add_argument("--only", default="", help="play only cases whose names have this text")
    parser.add_argument("--parallel", type=int, default=32, help="cases at a time (32)")
    shapes = parser.add_mutually_exclusive_group()
    for shape in SHAPES:
        shapes.add_argument(f"--{shape}", action="store_true", help=f"only the {shape} shape")
    parser.add_argument("--s3", action="store_true", help="store in SeaweedFS, not in files")
    return parser.parse_args()


async def run(options: argparse.Namespace, folder: Path) -> Report:
    async with AsyncExitStack() as ending:
        server = await TemporalServer.start(folder / "temporal", ui=False)
        ending.push_async_callback(server.stop)
        bucket = await make_bucket(folder, ending) if options.s3 else None
        client, report = await connect(server.address), Report()
        kinds: set[str] = set()
        for shape in [name for name in SHAPES if getattr(options, name)] or SHAPES:
            repository = await _serve_repository(folder, ending) if shape == "start" else None
            place = make_environment(
                *(client, folder / shape, HEARTBEAT_TIMEOUT, bucket),
                shape=shape,
                repository=repository,
            )
            ending.push_async_callback(place.store.close)
            undisturbed = await read_conversation(place.store, await run_case(place))
            cases = list_cases(undisturbed.played.points)
            chosen = [case for case in cases if options.only in str(case)][:: options.every]
            if options.short:  # what the local shape does by itself counts as other kinds
                chosen = list(choose_kinds(chosen, set() if shape == "local" else kinds))
            await play_all(place, undisturbed, chosen, options.parallel, report)
        return report


async def _serve_repository(folder: Path, ending: AsyncExitStack) -> str:
    """Serve a repository that asks for a token until the end, and return its URL."""
    place = folder / "repositories"
    place.mkdir()
    server = ending.enter_context(serve_git(place))
    return server.create("private/project", {"README": "Hello.", "AGENTS.md": "Be brief."})


async def make_bucket(folder: Path, ending: AsyncExitStack) -> tuple[str, S3Access]:
    server = await Seaweed.start(folder / "seaweed")
    ending.push_async_callback(server.stop)
    await server.make_bucket(BUCKET)
    access = S3Access(server.endpoint, server.access_key, server.secret_key, "us-east-1")
    return f"s3://{BUCKET}", access


async def play_all(
    place: Environment,
    undisturbed: FinishedConversation,
    chosen: Sequence[Case],
    parallel: int,
    report: Report,
) -> None:
    report.points += len({str(case.point) for case in chosen})
    left = begin_cases(chosen)

    async def some() -> None:
        for case in left:
            await judge_case(place, undisturbed, case, report)

    async with asyncio.TaskGroup() as group:
        for _ in range(parallel):
            group.create_task(some())


async def judge_case(
    place: Environment, undisturbed: FinishedConversation, case: Case, report: Report
) -> None:
    try:
        seen = await read_conversation(place.store, await run_case(place, case))
        wrong = await find_violations(place.store, undisturbed, seen)
    except (AssertionError, TimeoutError, PerdureError, RPCError) as error:
        name = f"{case} of {place.folder}"
        report.violations[name] = [f"{type(error).__name__}: {error}"]
        return
    _count(report, seen.played, case)
    report.lost += len(seen.lost_calls)
    repaid = count_repaid(undisturbed.played.bills, seen.played.bills).total()
    report.repaid_responses += repaid
    report.false_alarms += max(0, repaid - int(case.is_model_call))
    if wrong:
        report.violations[f"{case} of {place.folder}"] = [str(seen.played.folder), *wrong]
        print(f"{case}:", *wrong, sep="\n    ", flush=True)


def _count(report: Report, played: CaseResult, case: Case) -> None:
    report.cases[case.harm] += 1
    report.reached[case.harm] += played.reached
    if not played.reached:
        report.missed.append(str(case))


def print_report(report: Report, seconds: float) -> None:
    for harm, count in report.cases.items():
        print(f"{harm:8} {count:5} cases, of which {report.reached[harm]} came to their point")
    for case in report.missed:
        print(f"    did not: {case}")
    print(
        f"{report.points} points, {report.lost} outcomes unknown, "
        f"{report.repaid_responses} answers paid again; {report.false_alarms} of these as a worker "
        f"that lived was silent for {HEARTBEAT_TIMEOUT:g} s: the load is {os.getloadavg()[1]:.0f}"
    )
    for case, wrong in report.violations.items():
        print(f"{case}:", *wrong, sep="\n    ")
    print(f"{len(report.violations)} differences in {seconds:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
