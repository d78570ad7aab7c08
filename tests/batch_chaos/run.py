"""The whole of it: servers, workers, the command, the strikes, and the audit of what is left."""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from client.client import Client
from client.connect import connect
from embedded.seaweed import Seaweed
from storage.open import open_store
from storage.s3 import S3Access
from storage.store import Store
from tests.batch_chaos.audit import Witness, audited
from tests.batch_chaos.calls import Bill, bill
from tests.batch_chaos.command import Researcher
from tests.batch_chaos.crew import Blow, KeyedCrew
from tests.batch_chaos.model import Asked, Oracle, serving
from tests.batch_chaos.plan import USER, Planned, expected, planned, written
from tests.batch_chaos.report import Report
from tests.batch_chaos.silence import astray, was_silent
from tests.batch_chaos.strikes import Hunt, strikes
from tests.chaos.run import FOREIGN
from tests.chaos.temporal import MortalTemporal
from tests.chaos.tools import EFFECTS, effects

BUCKET = "chaos"
TASK_QUEUE = "chaos"

AT_REST = 6.0
"""Seconds after the end in which what is late may still come."""

LIMIT = 900.0
"""Seconds from the last strike to the end of the batch; after them it counts as hanging."""


@dataclass(frozen=True)
class Plan:
    """`at_a_time` samples are at work; with `s3` their logs are in an S3 store, else in files."""

    samples: int
    strikes: int
    at_a_time: int
    workers: int
    s3: bool
    seed: int


@dataclass
class Stage:
    client: Client
    temporal: MortalTemporal
    oracle: Oracle
    crew: KeyedCrew
    researcher: Researcher
    witness: Witness
    effects: Path


async def run(plan: Plan, name: str, folder: Path, tell: Callable[[str], None]) -> Report:
    """Run a batch of this name to its end; `tell` hears how it goes.

    Raises ProcessFailed where a server does not come up.
    """
    start, samples = monotonic(), planned(plan.samples)
    folder.mkdir()
    async with _stage(plan, name, samples, folder) as stage:
        chance = random.Random(plan.seed)
        hunt = Hunt(
            stage.crew, stage.temporal, stage.researcher, stage.oracle, chance, stage.witness.look
        )
        report = Report(name, plan.samples, hunt)
        try:
            await stage.crew.hire(plan.workers)
            began = monotonic()
            await _struck(plan, stage, hunt, report, tell)
            report.batch_seconds = monotonic() - began
            await asyncio.sleep(AT_REST)
        finally:
            stage.researcher.end()
            await stage.crew.stop()
        tell(f"{name}: all is done after {monotonic() - start:.0f} s; the audit")
        await _audited(stage, name, samples, report, folder)
        report.seconds = monotonic() - start
        return report


async def _struck(
    plan: Plan, stage: Stage, hunt: Hunt, report: Report, tell: Callable[[str], None]
) -> None:
    """Have the command run the batch, and everything killed meanwhile."""
    answers = sum(one.answers + one.is_graded for one in planned(plan.samples))
    telling = asyncio.create_task(_telling(hunt, stage, answers, tell))
    researching = asyncio.create_task(stage.researcher.run())
    try:
        await hunt.run(strikes(plan.strikes, hunt.chance), answers)
        async with asyncio.timeout(LIMIT):
            await researching
    except* Exception as errors:  # a batch that does not end is a finding: the audit tells the rest
        report.breaches += [f"it did not come to its end: {one!r}" for one in errors.exceptions]
    finally:
        researching.cancel()
        telling.cancel()


async def _telling(hunt: Hunt, stage: Stage, answers: int, tell: Callable[[str], None]) -> None:
    while True:
        await asyncio.sleep(10)
        struck = sum(hunt.done.values())
        tell(f"{struck} strikes, {len(stage.oracle.paid):,} answers of some {answers:,}")


async def _audited(
    stage: Stage, name: str, samples: Sequence[Planned], report: Report, folder: Path
) -> None:
    found = await audited(stage.client.store, name, samples, effects(stage.effects))
    report.found = found
    report.breaches += await astray(stage.client.temporal, f"batch-{name}")
    report.breaches += await stage.witness.lost()
    report.breaches += stage.crew.fallen
    report.breaches += [f"a request nobody foresaw: {one}" for one in stage.oracle.strange]
    calls, blows, due = stage.oracle.calls, stage.crew.blows, _due(samples)
    report.bill = bill(calls, blows, found.answers, due)
    silent = [one async for one in _silences(stage, name, report.bill)]
    report.bill = bill(calls, [*blows, *silent], found.answers, due)
    report.compare(samples)
    report.breaches += found.breaches  # last: where it hangs, they are thousands
    _keep_book(stage, folder)


async def _silences(stage: Stage, name: str, found: Bill) -> AsyncIterator[Blow]:
    """What else befell the workers of calls that came to nothing, as Temporal tells."""
    samples = stage.oracle.samples
    for lost in found.unexplained:
        call = lost.call
        attempt = expected(samples[call.asked.sample], name).attempts[0]
        if await was_silent(stage.client.temporal, attempt.conversation_id, call.asked):
            yield Blow("silent", call.worker, call.began, call.answered or call.began)


def _keep_book(stage: Stage, folder: Path) -> None:
    """Every call and every blow, for whoever wants to know how it came to a breach."""
    with (folder / "book.txt").open("w") as book:
        for one in (*stage.crew.blows, *stage.oracle.calls):
            print(one, file=book)


def _due(samples: Sequence[Planned]) -> dict[Asked, int]:
    """How often each answer has to be on record: once."""
    answers = {Asked(one.number, "", number): 1 for one in samples for number in range(one.answers)}
    return answers | {Asked(one.number, "grade", 0): 1 for one in samples if one.is_graded}


@asynccontextmanager
async def _stage(
    plan: Plan, name: str, samples: Sequence[Planned], folder: Path
) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as ending:
        temporal = await ending.enter_async_context(MortalTemporal.running(folder / "temporal"))
        env = {**_own(), "TEMPORAL_ADDRESS": temporal.address}
        store = await _store(plan, folder, env, ending)
        oracle = Oracle(samples)
        address = await ending.enter_async_context(serving(oracle))
        file = written(folder / "batch", name, samples, address, plan.at_a_time)
        client = Client(await connect(temporal.address), store, USER, TASK_QUEUE)
        counted = folder / "effects"
        counted.touch()
        mine = {**env, "PERDURE_DATA": str(folder / "laptop")}
        chance = random.Random(plan.seed + 1)
        theirs = {**env, EFFECTS: str(counted)}
        crew = KeyedCrew(client.temporal, TASK_QUEUE, theirs, folder, chance)
        researcher = Researcher(file, mine, folder / "command.log")
        yield Stage(client, temporal, oracle, crew, researcher, Witness(store, name), counted)


async def _store(plan: Plan, folder: Path, env: dict[str, str], ending: AsyncExitStack) -> Store:
    """The store, of which `env` is told."""
    if not plan.s3:
        (folder / "store").mkdir()
        env["PERDURE_STORE"] = (folder / "store").as_uri()
        return open_store(env["PERDURE_STORE"])
    seaweed = await Seaweed.start(folder / "seaweed")
    ending.push_async_callback(seaweed.stop)
    await seaweed.make_bucket(BUCKET)
    access = S3Access(seaweed.endpoint, seaweed.access_key, seaweed.secret_key, "us-east-1")
    env |= {
        "AWS_ACCESS_KEY_ID": seaweed.access_key,
        "AWS_SECRET_ACCESS_KEY": seaweed.secret_key,
        "AWS_ENDPOINT_URL_S3": seaweed.endpoint,
        "AWS_DEFAULT_REGION": "us-east-1",
        "PERDURE_STORE": f"s3://{BUCKET}",
    }
    store = open_store(env["PERDURE_STORE"], access)
    ending.push_async_callback(store.close)
    return store


def _own() -> dict[str, str]:
    """The caller's environment without what would decide for the workers."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**kept, "PERDURE_TASK_QUEUE": TASK_QUEUE, "PERDURE_USER": USER}
