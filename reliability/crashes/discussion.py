"""Kill a worker at every point of a discussion: `python -m reliability.crashes.discussion`.

A debate with a vote is held undisturbed first: what its worker passes in the steps of a discussion
are the points. Then each point and harm has a debate of its own, whose log must tell the same. The
steps of the agents' own turns are those of any conversation, which `reliability.crashes` has.
"""

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.agent.discussion.spec import DiscussionSpec, parse_discussion
from perdure.client.client import Client
from perdure.client.discussion.discussions import Discussions
from perdure.client.discussion.handle import DiscussionHandle
from perdure.client.ids import new_conversation_id
from perdure.embedded.temporal import TemporalServer
from perdure.errors import PerdureError
from perdure.temporal.connect import connect
from reliability.crashes.__main__ import (
    HEARTBEAT_TIMEOUT,
    MIN_REACHED_SHARE,
    Report,
    make_bucket,
    print_report,
)
from reliability.crashes.case import (
    Environment,
    make_environment,
    read_lines,
    start_worker,
    wait_until_reached,
)
from reliability.crashes.cases import Case, begin_cases, list_cases
from reliability.crashes.debate import Debate, find_violations, read_debate
from reliability.crashes.points import Point, Trap, read_point

DEBATE_TIMEOUT = 300.0

STEPS = "discussion."
"""The beginning of the names of a discussion's activities."""

ANSWERS: dict[str, list[Any]] = {
    "ada": [{"speak": True, "urgency": 7, "line": "Money."}, "It pays.", {"ballot": "yes"}],
    "bob": [{"speak": True, "urgency": 2, "line": "Rest."}, "We rest.", {"ballot": "no"}],
    "moderator": ["They disagree."],
}


@dataclass(frozen=True)
class Played:
    """A debate that is over, whether its point was come to, and the points that it passed."""

    debate: Debate
    reached: bool
    points: list[Point]


def make_spec(folder: Path) -> DiscussionSpec:
    """Make the spec of the debate, whose models answer from files in a folder."""

    def model(name: str) -> dict[str, Any]:
        texts = [it if isinstance(it, str) else json.dumps(it) for it in ANSWERS[name]]
        path = folder / f"{name}.json"
        path.write_text(json.dumps({"answers": texts}))
        return {"model": f"scripted:{path}", "heartbeat_timeout": HEARTBEAT_TIMEOUT}

    return parse_discussion(
        {
            "topic": "Four days?",
            "agents": [{"id": name, **model(name)} for name in ("ada", "bob")],
            "moderator": {"policy": "urgency", **model("moderator")},
            "phases": [{"name": "decision", "end": "vote"}],
        }
    )


async def run_debate(stage: Environment, spec: DiscussionSpec, case: Case | None = None) -> Played:
    """Hold the debate. Raises TimeoutError where it comes to no end."""
    session_id = new_conversation_id()
    folder = stage.folder / session_id
    folder.mkdir()
    sprung = folder / "sprung"
    trap = Trap(case.point, case.harm, sprung) if case else None
    client = Client(stage.temporal, stage.store, task_queue=session_id, search_attributes="off")
    handle = Discussions.from_client(client).get(session_id)
    async with start_worker(stage, session_id, "first", trap):
        talking = asyncio.create_task(_hold(client, session_id, spec))
        try:
            await wait_until_reached(sprung, talking)
            if case is None or case.harm == "lose" or not sprung.exists():
                await talking
            else:
                async with start_worker(stage, session_id, "second", None, "elsewhere"):
                    await talking
        finally:
            talking.cancel()
    return await _read_played(client, handle, folder)


async def _hold(client: Client, session_id: str, spec: DiscussionSpec) -> None:
    async with asyncio.timeout(DEBATE_TIMEOUT):
        handle = await Discussions.from_client(client).start(spec, session_id)
        await handle.vote("yes", "eve", contribution_id="eve", max_wait=DEBATE_TIMEOUT)
        result = await handle.result()
        assert result.status == "finished", result.reason


async def _read_played(client: Client, handle: DiscussionHandle, folder: Path) -> Played:
    passed = [read_point(line) for line in read_lines(folder / "first" / "passed")]
    return Played(
        debate=await read_debate(client, handle),
        reached=(folder / "sprung").exists(),
        points=[point for point in passed if point.step.startswith(STEPS)],
    )


async def judge_case(
    stage: Environment, spec: DiscussionSpec, undisturbed: Played, case: Case, report: Report
) -> None:
    report.cases[case.harm] += 1
    try:
        seen = await run_debate(stage, spec, case)
    except (AssertionError, TimeoutError, PerdureError) as error:
        report.violations[f"{case}"] = [f"{type(error).__name__}: {error}"]
        return
    report.reached[case.harm] += seen.reached
    if not seen.reached:
        report.missed.append(str(case))
    if wrong := find_violations(undisturbed.debate, seen.debate):
        report.violations[f"{case} of {seen.debate.session_id}"] = wrong


async def play_all(
    stage: Environment,
    spec: DiscussionSpec,
    options: argparse.Namespace,
    report: Report,
) -> None:
    undisturbed = await run_debate(stage, spec)
    assert not undisturbed.debate.faults, undisturbed.debate.faults
    cases = [case for case in list_cases(undisturbed.points) if options.only in str(case)]
    chosen: Sequence[Case] = cases[:: options.every]
    report.points = len({str(case.point) for case in chosen})
    left = begin_cases(chosen)

    async def some() -> None:
        for case in left:
            await judge_case(stage, spec, undisturbed, case, report)

    async with asyncio.TaskGroup() as group:
        for _ in range(options.parallel):
            group.create_task(some())


async def run(options: argparse.Namespace, folder: Path) -> Report:
    async with AsyncExitStack() as ending:
        server = await TemporalServer.start(folder / "temporal", ui=False)
        ending.push_async_callback(server.stop)
        bucket = await make_bucket(folder, ending) if options.s3 else None
        report, client = Report(), await connect(server.address)
        stage = make_environment(client, folder / "debates", HEARTBEAT_TIMEOUT, bucket)
        ending.push_async_callback(stage.store.close)
        await play_all(stage, make_spec(folder), options, report)
        return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="play only each Nth case (1)")
    parser.add_argument("--only", default="", help="play only cases with this text in their name")
    parser.add_argument("--parallel", type=int, default=32, help="cases at a time (32)")
    parser.add_argument("--s3", action="store_true", help="store in SeaweedFS, not in files")
    options = parser.parse_args()
    folder, began = Path(tempfile.mkdtemp(prefix="crashes-")), time.monotonic()
    report = asyncio.run(run(options, folder))
    print_report(report, time.monotonic() - began)
    if report.violations:
        print(f"What they left behind is in {folder}.")
        return 1
    shutil.rmtree(folder)
    return 1 if report.reached.total() < MIN_REACHED_SHARE * report.cases.total() else 0


if __name__ == "__main__":
    sys.exit(main())
