"""A crash case: a conversation loses its worker at one point, and another takes over."""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import temporalio.client

from examples.bfcl.objects import Objects, fetch_objects
from perdure.agent.spec import Agent
from perdure.client.client import Client
from perdure.client.ids import new_conversation_id
from perdure.storage.keys import conversation_prefix
from perdure.storage.open import open_store
from perdure.storage.store import S3Access, Store
from perdure.temporal.names import conversation_workflow_id
from reliability.crashes.bills import Bill, Timeouts, count_timeouts, read_bills
from reliability.crashes.cases import Case
from reliability.crashes.points import Point, Trap, read_point
from reliability.crashes.scenario import CONVERSATION_TIMEOUT, Shape, make_agent, run_conversation
from reliability.crashes.user import KEY, UserTraces, prepare_user, read_user
from reliability.crashes.worker import WorkerJob, run_worker

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["reliability.crashes.warm"])

POLL_INTERVAL = 0.1

THAWED_TIME = 0.5
"""Seconds for which a worker that was frozen goes on before it is asked to end."""

IMMUTABLE_OBJECTS = ("/events/", "/responses/", "/blobs/", "/workspace/")


@dataclass(frozen=True)
class Environment:
    """The place where conversations are played: a Temporal server, a store, a folder."""

    temporal: temporalio.client.Client
    url: str
    access: S3Access | None
    store: Store
    folder: Path
    spec: Agent

    @property
    def address(self) -> str:
        return str(self.temporal.service_client.config.target_host)

    @property
    def has_user(self) -> bool:
        """Tell whether the agent has secrets, memories and values of its user."""
        return bool(self.spec.secrets)


@dataclass(frozen=True)
class CaseResult:
    """The traces of a conversation: in the store, outside, and the answers that were paid for.

    `points` are those that the first worker passed, and `resumed` those of the one after it. `hit`
    says whether the point was come to. `timeouts` counts the attempts of each activity whose worker
    was silent for too long. `altered` are the objects that a worker which had been
    frozen still changed once it was thawed.
    """

    conversation_id: str
    case: Case | None
    folder: Path
    reached: bool
    objects: Objects
    effects: dict[str, list[str]]
    bills: list[Bill]
    timeouts: Timeouts
    points: list[Point]
    resumed: list[Point]
    altered: list[str]
    user: UserTraces | None
    """What it leaves its user, where its agent has memories."""

    @property
    def user_id(self) -> str:
        """The id of the user, who has this conversation alone."""
        return self.conversation_id


def make_environment(
    temporal: temporalio.client.Client,
    folder: Path,
    heartbeat: float,
    bucket: tuple[str, S3Access] | None = None,
    *,
    shape: Shape = "ordinary",
    repository: str | None = None,
) -> Environment:
    """Make an environment in `folder`, with a store there or in a `bucket`.

    `repository` is the one of a conversation that starts with it, where that is its shape.
    """
    url, access = bucket or (f"file://{folder}/store", None)
    place = folder / "conversations"
    place.mkdir(parents=True)
    spec = make_agent(place, heartbeat, shape, repository)
    return Environment(temporal, url, access, open_store(url, access), place, spec)


async def run_case(stage: Environment, case: Case | None = None) -> CaseResult:
    """Hold the conversation. Raises TimeoutError where it comes to no end, or a worker does not."""
    conversation_id = new_conversation_id()
    folder = stage.folder / conversation_id
    folder.mkdir()
    sprung = folder / "sprung"
    trap = Trap(case.point, case.harm, sprung) if case else None
    if stage.has_user:
        await prepare_user(stage.store, conversation_id)
    async with start_worker(stage, conversation_id, "first", trap) as first:
        talking = asyncio.create_task(hold_conversation(stage, conversation_id))
        try:
            await wait_until_reached(sprung, talking)
            altered: list[str] = []
            if case is None or case.harm == "lose" or not sprung.exists():
                await talking
            else:
                disk = "elsewhere" if case.elsewhere else "first"
                async with start_worker(stage, conversation_id, "second", None, disk):
                    await talking
                    if case.harm == "freeze":
                        altered = await thaw_worker(stage, conversation_id, first)
        finally:
            talking.cancel()
    return await collect_result(stage, conversation_id, case, altered)


async def hold_conversation(stage: Environment, conversation_id: str) -> None:
    folder = stage.folder / conversation_id
    client = Client(
        stage.temporal,
        stage.store,
        user_id=conversation_id,
        task_queue=conversation_id,
        search_attributes="off",
    )
    outside = folder / "outside" / conversation_id
    await run_conversation(client, conversation_id, stage.spec, outside)


async def wait_until_reached(sprung: Path, talking: "asyncio.Task[None]") -> None:
    while not (sprung.exists() or talking.done()):
        await asyncio.sleep(POLL_INTERVAL)


async def thaw_worker(
    stage: Environment, conversation_id: str, worker: ForkServerProcess
) -> list[str]:
    """Let the worker go on for a moment, then end in good order; what it changed of what was there.

    Until it hears that nobody waits for its steps any more, it does what it had begun.
    """
    before = await read_objects(stage, conversation_id)
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGCONT)
    await asyncio.sleep(THAWED_TIME)
    await wait_until_stopped(worker)
    ended = stage.folder / conversation_id / "first" / "ended"
    assert ended.exists(), f"what was thawed did not end in good order, but with {worker.exitcode}"
    after = await read_objects(stage, conversation_id)
    # Its late results are kept as blobs, beside the log: nothing refers to them.
    new = [key for key in after if key not in before and ("/events/" in key or "/resp" in key)]
    changed = [
        key
        for key, body in before.items()
        if after.get(key) != body and any(part in key for part in IMMUTABLE_OBJECTS)
    ]
    return [*new, *changed]


@asynccontextmanager
async def start_worker(
    stage: Environment, conversation_id: str, name: str, trap: Trap | None, disk: str = "first"
) -> AsyncIterator[ForkServerProcess]:
    folder = stage.folder / conversation_id
    own = folder / name
    own.mkdir()
    job = WorkerJob(
        temporal=stage.address,
        store=stage.url,
        access=stage.access,
        queue=conversation_id,
        folder=own,
        disk=folder / "disks" / disk,
        outside=folder / "outside",
        trap=trap,
        secret_key=KEY if stage.has_user else None,
    )
    process = FORKS.Process(target=run_worker, args=(job,), daemon=True)
    await asyncio.to_thread(process.start)
    try:
        yield process
        if process.exitcode is None and trap is None:
            await wait_until_stopped(process)
    finally:
        process.kill()
        await asyncio.to_thread(process.join)


async def wait_until_stopped(process: ForkServerProcess) -> None:
    process.terminate()
    async with asyncio.timeout(CONVERSATION_TIMEOUT):
        while process.is_alive():
            await asyncio.sleep(POLL_INTERVAL)


async def collect_result(
    stage: Environment, conversation_id: str, case: Case | None, altered: list[str]
) -> CaseResult:
    folder = stage.folder / conversation_id
    outside = folder / "outside" / conversation_id
    workflow_id = conversation_workflow_id(conversation_id, conversation_id)
    return CaseResult(
        conversation_id=conversation_id,
        case=case,
        folder=folder,
        reached=(folder / "sprung").exists(),
        objects=await read_objects(stage, conversation_id),
        effects={name: read_lines(outside / name) for name in ("paid", "jotted")},
        bills=[bill for bills in folder.glob("*/bills") for bill in read_bills(bills)],
        timeouts=await count_timeouts(stage.temporal.get_workflow_handle(workflow_id)),
        points=[read_point(line) for line in read_lines(folder / "first" / "passed")],
        resumed=[read_point(line) for line in read_lines(folder / "second" / "passed")],
        altered=altered,
        user=await read_user(stage.store, conversation_id, conversation_id)
        if stage.has_user
        else None,
    )


async def read_objects(stage: Environment, conversation_id: str) -> Objects:
    return await fetch_objects(stage.store, conversation_prefix(conversation_id, conversation_id))


def read_lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
