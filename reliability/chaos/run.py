"""A chaos run: servers, workers, load, strikes, and the audit of the result."""

import asyncio
import json
import os
import random
import tempfile
import urllib.request
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from examples.bfcl.objects import StoredEvent, fetch_objects, parse_objects
from perdure.client.client import Client
from perdure.embedded.seaweed import Seaweed
from perdure.storage.errors import StoreError, Unrestorable
from perdure.storage.keys import conversation_prefix
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.verify import verify
from perdure.storage.open import open_store
from perdure.storage.snapshots.restore import restore
from perdure.storage.store import S3Access, Store
from perdure.temporal.connect import connect
from perdure.testing.server import serve_scripts
from reliability.chaos import proxy
from reliability.chaos.audit import (
    Acknowledgements,
    Violation,
    ViolationKind,
    audit,
    expected_files,
    find_newest_snapshot,
)
from reliability.chaos.load import LoadConversation, run_conversation
from reliability.chaos.proxy import FaultyProxy
from reliability.chaos.report import Report
from reliability.chaos.scripts import scripts
from reliability.chaos.strikes import StrikeKind, StrikeRunner, plan_strikes
from reliability.chaos.temporal import RestartableTemporal
from reliability.chaos.tools import EFFECTS, read_effects
from reliability.chaos.worker_pool import WorkerPool

BUCKET = "chaos"
USER = "chaos"
TASK_QUEUE = "chaos"

# What the caller's own settings would otherwise decide for the workers.
FOREIGN_PREFIXES = ("AWS_", "OPENAI_", "PERDURE_", "TEMPORAL_")

SETTLE_SECONDS = 5.0
"""Seconds after the last conversation for late requests to finish."""


@dataclass(frozen=True)
class Plan:
    """`conversations` go on at a time; when one has come to its end, the next one begins.

    `faults` is the share of the requests to the store that something befalls, `every` the seconds
    from a worker's being at work to the next strike.
    """

    kills: int
    server_kills: int
    frozen: int
    conversations: int
    workers: int
    faults: float
    every: float
    seed: int


@dataclass
class Environment:
    client: Client
    temporal: RestartableTemporal
    network: FaultyProxy
    model: str
    workers: WorkerPool
    effects: Path
    writes: list[proxy.StoredWrite]


async def run(plan: Plan, folder: Path, tell: Callable[[str], None]) -> Report:
    """Carry out the plan with servers whose files are in `folder`; `tell` hears how it goes.

    Raises ProcessFailed where a server does not come up.
    """
    start = monotonic()
    async with start_environment(plan, folder) as stage:
        chance = random.Random(plan.seed)
        talks: list[LoadConversation] = []
        live = lambda: [talk.conversation for talk in talks if talk.end is None]  # noqa: E731
        try:
            await stage.workers.start(plan.workers)
            stage.network.rate = plan.faults
            hunt = StrikeRunner(stage.workers, stage.temporal, live, chance, plan.every)
            strikes = plan_strikes(plan.kills, plan.server_kills, plan.frozen, chance)
            await run_all(plan, stage, talks, hunt, strikes, tell)
            await asyncio.sleep(SETTLE_SECONDS)
        finally:
            await stage.workers.stop()
        tell(f"all is done after {monotonic() - start:.0f} s; the audit")
        report = Report(plan.seed, hunt.strikes, stage.writes, stage.network, stage.workers)
        await audit_conversation(stage, talks, report, folder)
        report.seconds = monotonic() - start
        return report


@asynccontextmanager
async def start_environment(plan: Plan, folder: Path) -> AsyncIterator[Environment]:
    writes: list[proxy.StoredWrite] = []
    async with AsyncExitStack() as ending:
        enter = ending.enter_async_context
        temporal = await enter(RestartableTemporal.running(folder / "temporal"))
        seaweed = await Seaweed.start(folder / "store")
        ending.push_async_callback(seaweed.stop)
        await seaweed.make_bucket(BUCKET)
        network = FaultyProxy(seaweed.endpoint, plan.seed, 0.0, stored=writes.append)
        await enter(network.listening())
        model = await enter(serve_scripts(scripts(plan.seed)))
        access = S3Access(seaweed.endpoint, seaweed.access_key, seaweed.secret_key, "us-east-1")
        # Those who look on ask the store itself: what befalls the workers must not befall them.
        store = open_store(f"s3://{BUCKET}", access)
        ending.push_async_callback(store.close)
        client = Client(await connect(temporal.address), store, USER, TASK_QUEUE)
        env = worker_environment(temporal.address, network.endpoint, access)
        counted = folder / "effects"
        counted.touch()
        crew_env = {**env, EFFECTS: str(counted)}
        chance = random.Random(plan.seed + 1)
        crew = WorkerPool(client.temporal, TASK_QUEUE, crew_env, folder, chance)
        yield Environment(client, temporal, network, model, crew, counted, writes)


def worker_environment(temporal: str, endpoint: str, access: S3Access) -> dict[str, str]:
    """Return the environment of a worker: the addresses of its servers."""
    own = {
        name: value for name, value in os.environ.items() if not name.startswith(FOREIGN_PREFIXES)
    }
    return own | {
        "AWS_ACCESS_KEY_ID": access.access_key or "",
        "AWS_SECRET_ACCESS_KEY": access.secret_key or "",
        "AWS_ENDPOINT_URL_S3": endpoint,
        "AWS_DEFAULT_REGION": "us-east-1",
        "OPENAI_API_KEY": "the scripted model asks for none",
        "PERDURE_STORE": f"s3://{BUCKET}",
        "PERDURE_TASK_QUEUE": TASK_QUEUE,
        "PERDURE_USER": USER,
        "TEMPORAL_ADDRESS": temporal,
    }


async def run_all(
    plan: Plan,
    stage: Environment,
    talks: list[LoadConversation],
    hunt: StrikeRunner,
    strikes: Sequence[StrikeKind],
    tell: Callable[[str], None],
) -> None:
    """Conversations one after the other, so many at a time, until the strikes are over."""
    models = list(scripts(plan.seed))

    async def some(lane: int) -> None:
        while not hunting.done():
            nth = len(talks)
            model = models[nth % len(models)]
            await run_conversation(
                stage.client, model, stage.model, talks, f"{plan.seed} {nth} {lane}"
            )
            over = sum(talk.end == "" for talk in talks)
            tell(f"{len(hunt.strikes)} strikes, {over} conversations at their end")

    async with asyncio.TaskGroup() as lanes:
        hunting = lanes.create_task(hunt.run(strikes))
        for lane in range(plan.conversations):
            lanes.create_task(some(lane))


async def audit_conversation(
    stage: Environment, talks: Sequence[LoadConversation], report: Report, folder: Path
) -> None:
    done = read_effects(stage.effects)
    report.effects = len(done)
    for talk in talks:
        log = talk.conversation.log
        objects = await fetch_objects(log.store, conversation_prefix(USER, talk.conversation.id))
        events = parse_objects(objects)
        mine = [effect for effect in done if effect.conversation_id == talk.conversation.id]
        report.count(talk, events, objects, mine)
        findings = list(audit(events, Acknowledgements(talk.message_ids, talk.slots), mine))
        if talk.end != "" or not is_closed(events):
            findings.append(
                Violation(ViolationKind.UNFINISHED, talk.end or "its log is not closed")
            )
        findings += await verify_log(log)
        findings += await check_files(log.store, events, folder)
        report.violations += [(talk.conversation.id, violation) for violation in findings]
    known = {talk.conversation.id for talk in talks}
    strange = {effect.conversation_id for effect in done} - known
    report.violations += [
        (item, Violation(ViolationKind.LOST, "nobody knows it")) for item in strange
    ]
    for words in stage.workers.crash_outputs:
        report.violations.append(("a worker", Violation(ViolationKind.FAILED, words)))
    report.responses_generated = await asyncio.to_thread(count_responses, stage.model)


def is_closed(events: Sequence[StoredEvent]) -> bool:
    states = (event for event in events if event.kind == "ConversationStateUpdateEvent")
    return any(state.fields.get("value") == "closed" for state in states)


async def verify_log(log: EventLog) -> list[Violation]:
    """Return the findings of a verification."""
    try:
        findings = [finding async for finding in verify(log) if finding.kind != "note"]
    except StoreError as error:
        return [Violation(ViolationKind.DAMAGED, str(error))]
    return [Violation(ViolationKind.DAMAGED, f"{item.key}: {item.detail}") for item in findings]


async def check_files(store: Store, events: Sequence[StoredEvent], folder: Path) -> list[Violation]:
    """List the expected file contents that the newest snapshot lacks."""
    due, snapshot = expected_files(events), find_newest_snapshot(events)
    if not due:
        return []
    if snapshot is None:
        return [Violation(ViolationKind.LOST, "files were made, and there is no snapshot")]
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name) / "files"
        try:
            await restore(store, snapshot, place)
        except (StoreError, Unrestorable, OSError) as error:
            return [Violation(ViolationKind.DAMAGED, f"{snapshot} cannot be restored: {error}")]
        return [
            Violation(ViolationKind.LOST, f"{path} is not what a call said it made")
            for path, text in due.items()
            if not (place / path).is_file() or (place / path).read_text() != text
        ]


def count_responses(model: str) -> int:
    """Count the complete responses of the model."""
    with urllib.request.urlopen(f"{model.removesuffix('/v1')}/calls") as answer:
        return sum(call["answered"] for call in json.load(answer)["calls"])
