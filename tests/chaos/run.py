"""The whole of it: servers, workers, people, strikes, and the audit of what is left."""

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

from client.client import Client
from client.connect import connect
from embedded.seaweed import Seaweed
from examples.bfcl.objects import Stored, fetched, stored
from models.serve import serve
from storage.errors import StoreError, Unrestorable
from storage.keys import conversation_prefix
from storage.log import EventLog
from storage.open import open_store
from storage.s3 import S3Access
from storage.snapshots.restore import restore
from storage.store import Store
from storage.verify import verify
from tests.chaos import proxy
from tests.chaos.audit import (
    Account,
    Violation,
    Wrong,
    audit,
    due_files,
    newest_snapshot,
)
from tests.chaos.crew import Crew
from tests.chaos.load import Talk, talk
from tests.chaos.proxy import FaultyProxy
from tests.chaos.report import Report
from tests.chaos.scripts import scripts
from tests.chaos.strikes import Hunt, Kind, planned
from tests.chaos.temporal import MortalTemporal
from tests.chaos.tools import EFFECTS, effects

BUCKET = "chaos"
USER = "chaos"
TASK_QUEUE = "chaos"

# What the caller's own settings would otherwise decide for the workers.
FOREIGN = ("AWS_", "OPENAI_", "PERDURE_", "TEMPORAL_")

AT_REST = 5.0
"""Seconds after the last conversation in which what is late may still come."""


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
class Stage:
    client: Client
    temporal: MortalTemporal
    network: FaultyProxy
    model: str
    crew: Crew
    effects: Path
    writes: list[proxy.Stored]


async def run(plan: Plan, folder: Path, tell: Callable[[str], None]) -> Report:
    """Carry out the plan with servers whose files are in `folder`; `tell` hears how it goes.

    Raises ProcessFailed where a server does not come up.
    """
    start = monotonic()
    async with _stage(plan, folder) as stage:
        chance = random.Random(plan.seed)
        talks: list[Talk] = []
        live = lambda: [one.conversation for one in talks if one.end is None]  # noqa: E731
        try:
            await stage.crew.hire(plan.workers)
            stage.network.rate = plan.faults
            hunt = Hunt(stage.crew, stage.temporal, live, chance, plan.every)
            strikes = planned(plan.kills, plan.server_kills, plan.frozen, chance)
            await _all(plan, stage, talks, hunt, strikes, tell)
            await asyncio.sleep(AT_REST)
        finally:
            await stage.crew.stop()
        tell(f"all is done after {monotonic() - start:.0f} s; the audit")
        report = Report(plan.seed, hunt.strikes, stage.writes, stage.network, stage.crew)
        await _audited(stage, talks, report, folder)
        report.seconds = monotonic() - start
        return report


@asynccontextmanager
async def _stage(plan: Plan, folder: Path) -> AsyncIterator[Stage]:
    writes: list[proxy.Stored] = []
    async with AsyncExitStack() as ending:
        enter = ending.enter_async_context
        temporal = await enter(MortalTemporal.running(folder / "temporal"))
        seaweed = await Seaweed.start(folder / "store")
        ending.push_async_callback(seaweed.stop)
        await seaweed.make_bucket(BUCKET)
        network = FaultyProxy(seaweed.endpoint, plan.seed, 0.0, stored=writes.append)
        await enter(network.listening())
        model = await enter(serve(scripts(plan.seed)))
        access = S3Access(seaweed.endpoint, seaweed.access_key, seaweed.secret_key, "us-east-1")
        # Those who look on ask the store itself: what befalls the workers must not befall them.
        store = open_store(f"s3://{BUCKET}", access)
        ending.push_async_callback(store.close)
        client = Client(await connect(temporal.address), store, USER, TASK_QUEUE)
        env = _environment(temporal.address, network.endpoint, access)
        counted = folder / "effects"
        counted.touch()
        crew_env = {**env, EFFECTS: str(counted)}
        chance = random.Random(plan.seed + 1)
        crew = Crew(client.temporal, TASK_QUEUE, crew_env, folder, chance)
        yield Stage(client, temporal, network, model, crew, counted, writes)


def _environment(temporal: str, endpoint: str, access: S3Access) -> dict[str, str]:
    """What a worker is told of where things are."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
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


async def _all(
    plan: Plan,
    stage: Stage,
    talks: list[Talk],
    hunt: Hunt,
    strikes: Sequence[Kind],
    tell: Callable[[str], None],
) -> None:
    """Conversations one after the other, so many at a time, until the strikes are over."""
    models = list(scripts(plan.seed))

    async def some(lane: int) -> None:
        while not hunting.done():
            nth = len(talks)
            model = models[nth % len(models)]
            await talk(stage.client, model, stage.model, talks, f"{plan.seed} {nth} {lane}")
            over = sum(one.end == "" for one in talks)
            tell(f"{len(hunt.strikes)} strikes, {over} conversations at their end")

    async with asyncio.TaskGroup() as lanes:
        hunting = lanes.create_task(hunt.run(strikes))
        for lane in range(plan.conversations):
            lanes.create_task(some(lane))


async def _audited(stage: Stage, talks: Sequence[Talk], report: Report, folder: Path) -> None:
    done = effects(stage.effects)
    report.effects = len(done)
    for one in talks:
        log = one.conversation.log
        objects = await fetched(log.store, conversation_prefix(USER, one.conversation.id))
        events = stored(objects)
        mine = [effect for effect in done if effect.conversation_id == one.conversation.id]
        report.count(one, events, objects, mine)
        found = list(audit(events, Account(one.said, one.slots), mine))
        if one.end != "" or not _is_closed(events):
            found.append(Violation(Wrong.UNFINISHED, one.end or "its log is not closed"))
        found += await _verified(log)
        found += await _files(log.store, events, folder)
        report.violations += [(one.conversation.id, violation) for violation in found]
    known = {one.conversation.id for one in talks}
    strange = {effect.conversation_id for effect in done} - known
    report.violations += [(one, Violation(Wrong.LOST, "nobody knows it")) for one in strange]
    for words in stage.crew.fallen:
        report.violations.append(("a worker", Violation(Wrong.FAILED, words)))
    report.answers_paid = await asyncio.to_thread(_answers, stage.model)


def _is_closed(events: Sequence[Stored]) -> bool:
    states = (event for event in events if event.kind == "ConversationStateUpdateEvent")
    return any(one.fields.get("value") == "closed" for one in states)


async def _verified(log: EventLog) -> list[Violation]:
    """What `perdure verify` says."""
    try:
        findings = [finding async for finding in verify(log) if finding.kind != "note"]
    except StoreError as error:
        return [Violation(Wrong.DAMAGED, str(error))]
    return [Violation(Wrong.DAMAGED, f"{one.key}: {one.what}") for one in findings]


async def _files(store: Store, events: Sequence[Stored], folder: Path) -> list[Violation]:
    """What is missing in the files as the newest snapshot has them."""
    due, snapshot = due_files(events), newest_snapshot(events)
    if not due:
        return []
    if snapshot is None:
        return [Violation(Wrong.LOST, "files were made, and there is no snapshot")]
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name) / "files"
        try:
            await restore(store, snapshot, place)
        except (StoreError, Unrestorable, OSError) as error:
            return [Violation(Wrong.DAMAGED, f"{snapshot} cannot be restored: {error}")]
        return [
            Violation(Wrong.LOST, f"{path} is not what a call said it made")
            for path, text in due.items()
            if not (place / path).is_file() or (place / path).read_text() != text
        ]


def _answers(model: str) -> int:
    """How many answers the model gave, whole."""
    with urllib.request.urlopen(f"{model.removesuffix('/v1')}/calls") as answer:
        return sum(one["answered"] for one in json.load(answer)["calls"])
