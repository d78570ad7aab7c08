"""A batch run: servers, workers, the command, strikes, and the audit of the result."""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from perdure.client.client import Client
from perdure.embedded.seaweed import Seaweed
from perdure.storage.open import open_store
from perdure.storage.store import S3Access, Store
from perdure.temporal.connect import connect
from perdure.temporal.names import batch_workflow_id
from reliability.batch_chaos.audit import ResultMonitor, audit_batch
from reliability.batch_chaos.calls import CallAudit, audit_calls
from reliability.batch_chaos.command import BatchCommand
from reliability.batch_chaos.model import BatchModelServer, RequestId, serve
from reliability.batch_chaos.plan import (
    USER,
    PlannedSample,
    expected_result,
    plan_samples,
    write_batch,
)
from reliability.batch_chaos.report import Report
from reliability.batch_chaos.silence import find_nondeterminism, was_silent
from reliability.batch_chaos.strikes import StrikeRunner, plan_strikes
from reliability.batch_chaos.worker_pool import Disruption, KeyedWorkerPool
from reliability.chaos.environment import FOREIGN_PREFIXES
from reliability.chaos.temporal import RestartableTemporal
from reliability.chaos.tools import EFFECTS, read_effects

BUCKET = "chaos"
TASK_QUEUE = "chaos"

SETTLE_SECONDS = 6.0
"""Seconds after the end in which what is late may still come."""

BATCH_TIMEOUT = 900.0
"""Seconds from the last strike to the end of the batch; after them it counts as hanging."""


@dataclass(frozen=True)
class Plan:
    """`at_a_time` samples are at work; with `s3` their logs are in an S3 store, else in files."""

    samples: int
    strikes: int
    concurrency: int
    workers: int
    s3: bool
    seed: int


@dataclass
class Environment:
    client: Client
    temporal: RestartableTemporal
    model: BatchModelServer
    workers: KeyedWorkerPool
    command: BatchCommand
    monitor: ResultMonitor
    effects: Path


async def run(plan: Plan, name: str, folder: Path, tell: Callable[[str], None]) -> Report:
    """Run a batch of this name to its end; `tell` hears how it goes.

    Raises ProcessFailed where a server does not come up.
    """
    start, samples = monotonic(), plan_samples(plan.samples)
    folder.mkdir()
    async with start_environment(plan, name, samples, folder) as stage:
        chance = random.Random(plan.seed)
        hunt = StrikeRunner(
            stage.workers, stage.temporal, stage.command, stage.model, chance, stage.monitor.observe
        )
        report = Report(name, plan.samples, hunt)
        try:
            await stage.workers.start(plan.workers)
            began = monotonic()
            await run_with_strikes(plan, stage, hunt, report, tell)
            report.batch_seconds = monotonic() - began
            await asyncio.sleep(SETTLE_SECONDS)
        finally:
            stage.command.end()
            await stage.workers.stop()
        tell(f"{name}: all is done after {monotonic() - start:.0f} s; the audit")
        await audit(stage, name, samples, report, folder)
        report.seconds = monotonic() - start
        return report


async def run_with_strikes(
    plan: Plan, stage: Environment, hunt: StrikeRunner, report: Report, tell: Callable[[str], None]
) -> None:
    """Have the command run the batch, and everything killed meanwhile."""
    answers = sum(sample.answers + sample.is_graded for sample in plan_samples(plan.samples))
    telling = asyncio.create_task(report_progress(hunt, stage, answers, tell))
    researching = asyncio.create_task(stage.command.run())
    try:
        await hunt.run(plan_strikes(plan.strikes, hunt.random), answers)
        async with asyncio.timeout(BATCH_TIMEOUT):
            await researching
    except* Exception as errors:  # a batch that does not end is a finding: the audit tells the rest
        report.violations += [
            f"it did not come to its end: {exception!r}" for exception in errors.exceptions
        ]
    finally:
        researching.cancel()
        telling.cancel()


async def report_progress(
    hunt: StrikeRunner, stage: Environment, answers: int, tell: Callable[[str], None]
) -> None:
    while True:
        await asyncio.sleep(10)
        struck = sum(hunt.done.values())
        tell(f"{struck} strikes, {len(stage.model.paid):,} answers of some {answers:,}")


async def audit(
    stage: Environment, name: str, samples: Sequence[PlannedSample], report: Report, folder: Path
) -> None:
    log_audit = await audit_batch(stage.client.store, name, samples, read_effects(stage.effects))
    report.audit = log_audit
    report.violations += await find_nondeterminism(
        stage.client.temporal, batch_workflow_id(USER, name)
    )
    report.violations += await stage.monitor.changed_results()
    report.violations += stage.workers.crash_outputs
    report.violations += [f"a request nobody foresaw: {item}" for item in stage.model.strange]
    calls, blows, due = stage.model.calls, stage.workers.disruptions, expected_responses(samples)
    report.calls = audit_calls(calls, blows, log_audit.answers, due)
    silent = [silence async for silence in find_silences(stage, name, report.calls)]
    report.calls = audit_calls(calls, [*blows, *silent], log_audit.answers, due)
    report.compare(samples)
    report.violations += log_audit.violations  # last: where it hangs, they are thousands
    write_evidence(stage, folder)


async def find_silences(
    stage: Environment, name: str, calls: CallAudit
) -> AsyncIterator[Disruption]:
    """Find what else befell the workers of calls without a result, by Temporal's history."""
    samples = stage.model.samples
    for lost in calls.unexplained:
        call = lost.call
        attempt = expected_result(samples[call.request.sample], name).attempts[0]
        if await was_silent(stage.client.temporal, attempt.conversation_id, call.request):
            yield Disruption("silent", call.worker, call.began, call.answered or call.began)


def write_evidence(stage: Environment, folder: Path) -> None:
    """Every call and every blow, for whoever wants to know how it came to a breach."""
    with (folder / "book.txt").open("w") as book:
        for disruption in (*stage.workers.disruptions, *stage.model.calls):
            print(disruption, file=book)


def expected_responses(samples: Sequence[PlannedSample]) -> dict[RequestId, int]:
    """Return how often each answer must be recorded: once."""
    answers = {
        RequestId(sample.number, "", number): 1
        for sample in samples
        for number in range(sample.answers)
    }
    return answers | {
        RequestId(sample.number, "grade", 0): 1 for sample in samples if sample.is_graded
    }


@asynccontextmanager
async def start_environment(
    plan: Plan, name: str, samples: Sequence[PlannedSample], folder: Path
) -> AsyncIterator[Environment]:
    async with AsyncExitStack() as ending:
        temporal = await ending.enter_async_context(
            RestartableTemporal.running(folder / "temporal")
        )
        env = {**clean_environment(), "TEMPORAL_ADDRESS": temporal.address}
        store = await start_store(plan, folder, env, ending)
        oracle = BatchModelServer(samples)
        address = await ending.enter_async_context(serve(oracle))
        file = write_batch(folder / "batch", name, samples, address, plan.concurrency)
        client = Client(await connect(temporal.address), store, USER, TASK_QUEUE)
        counted = folder / "effects"
        counted.touch()
        mine = {**env, "PERDURE_DATA": str(folder / "laptop")}
        chance = random.Random(plan.seed + 1)
        theirs = {**env, EFFECTS: str(counted)}
        crew = KeyedWorkerPool(client.temporal, TASK_QUEUE, theirs, folder, chance)
        researcher = BatchCommand(file, mine, folder / "command.log")
        yield Environment(
            client, temporal, oracle, crew, researcher, ResultMonitor(store, name), counted
        )


async def start_store(
    plan: Plan, folder: Path, env: dict[str, str], ending: AsyncExitStack
) -> Store:
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


def clean_environment() -> dict[str, str]:
    """The caller's environment without what would decide for the workers."""
    retained = {
        name: value for name, value in os.environ.items() if not name.startswith(FOREIGN_PREFIXES)
    }
    return {**retained, "PERDURE_TASK_QUEUE": TASK_QUEUE, "PERDURE_USER": USER}
