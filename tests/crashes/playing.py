"""One conversation whose worker is lost at one point, and another worker that takes over."""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import temporalio.client

from agent.spec import Spec
from client.client import Client
from client.ids import new_conversation_id
from examples.bfcl.objects import Objects, fetched
from storage.keys import conversation_prefix
from storage.open import open_store
from storage.s3 import S3Access
from storage.store import Store
from tests.crashes.points import Harm, Point, Trap, read_point
from tests.crashes.talking import PATIENCE, spec_in, talk_to
from tests.crashes.working import Job, work

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.crashes.warm"])

PAUSE = 0.1

IMMUTABLE = ("/events/", "/responses/", "/blobs/", "/workspace/")


@dataclass(frozen=True)
class Stage:
    """Where conversations are played: a Temporal server, a store, a folder for all else."""

    temporal: temporalio.client.Client
    url: str
    access: S3Access | None
    store: Store
    folder: Path
    spec: Spec

    @property
    def address(self) -> str:
        return str(self.temporal.service_client.config.target_host)


@dataclass(frozen=True)
class Case:
    """The worker is lost at `point`; who takes over has its disk, or one `elsewhere`."""

    point: Point
    harm: Harm
    elsewhere: bool

    def __str__(self) -> str:
        return f"{self.harm} {self.point}" + (" (another disk)" if self.elsewhere else "")


@dataclass(frozen=True)
class Played:
    """What was left of a conversation: in the store, outside, and what its model was paid for.

    `points` are those that the first worker passed, and `resumed` those of the one after it. `hit`
    says whether the point was come to. `altered` are the objects that a worker which had been
    frozen still changed once it was thawed.
    """

    conversation_id: str
    case: Case | None
    folder: Path
    hit: bool
    objects: Objects
    deeds: dict[str, list[str]]
    bills: list[str]
    points: list[Point]
    resumed: list[Point]
    altered: list[str]


def stage(
    temporal: temporalio.client.Client,
    folder: Path,
    heartbeat: float,
    bucket: tuple[str, S3Access] | None = None,
) -> Stage:
    """All in `folder`, also what is stored, unless that goes to a `bucket`."""
    url, access = bucket or (f"file://{folder}/store", None)
    place = folder / "conversations"
    place.mkdir(parents=True)
    spec = spec_in(place, heartbeat)
    return Stage(temporal, url, access, open_store(url, access), place, spec)


def cases(points: Sequence[Point]) -> Iterator[Case]:
    """Every harm at every point at which it can be done.

    A worker that was killed is followed by turns by one with its disk and by one with another. One
    that stands still is a machine that does: nobody else has its disk.
    """
    for nth, point in enumerate(_apart(points)):
        yield Case(point, "kill", elsewhere=nth % 2 == 1)
        yield Case(point, "freeze", elsewhere=True)
    for point in points:
        if point.is_store:
            yield Case(point, "lose", elsewhere=False)


def _apart(points: Sequence[Point]) -> Iterator[Point]:
    """Without a call's beginning straight behind the end of another: it is the same moment.

    Not so in a tool's step, which leaves something on the disk in between.
    """
    yield from points[:1]
    for last, point in pairwise(points):
        straight = (last.phase, point.phase) == ("after", "before") and last.step == point.step
        if not straight or point.step == "tool.call":
            yield point


async def play(stage: Stage, case: Case | None = None) -> Played:
    """Hold the conversation. Raises TimeoutError where it comes to no end, or a worker does not."""
    conversation_id = new_conversation_id()
    folder = stage.folder / conversation_id
    folder.mkdir()
    sprung = folder / "sprung"
    trap = Trap(case.point, case.harm, sprung) if case else None
    async with _worker(stage, conversation_id, "first", trap) as first:
        talking = asyncio.create_task(_talk(stage, conversation_id))
        try:
            await _sprung(sprung, talking)
            altered: list[str] = []
            if case is None or case.harm == "lose" or not sprung.exists():
                await talking
            else:
                disk = "elsewhere" if case.elsewhere else "first"
                async with _worker(stage, conversation_id, "second", None, disk):
                    await talking
                    if case.harm == "freeze":
                        altered = await _thawed(stage, conversation_id, first)
        finally:
            talking.cancel()
    return await _played(stage, conversation_id, case, altered)


async def _talk(stage: Stage, conversation_id: str) -> None:
    folder = stage.folder / conversation_id
    client = Client(
        stage.temporal, stage.store, task_queue=conversation_id, search_attributes="off"
    )
    outside = folder / "outside" / conversation_id
    await talk_to(client, conversation_id, stage.spec, outside)


async def _sprung(sprung: Path, talking: "asyncio.Task[None]") -> None:
    while not (sprung.exists() or talking.done()):
        await asyncio.sleep(PAUSE)


async def _thawed(stage: Stage, conversation_id: str, worker: ForkServerProcess) -> list[str]:
    """Let the worker go on and end in good order; what it changed of what was there."""
    before = await _objects(stage, conversation_id)
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGCONT)
    await _stopped(worker)
    ended = stage.folder / conversation_id / "first" / "ended"
    assert ended.exists(), f"what was thawed did not end in good order, but with {worker.exitcode}"
    after = await _objects(stage, conversation_id)
    # Its late results are kept as blobs, beside the log: nothing refers to them.
    new = [key for key in after if key not in before and ("/events/" in key or "/resp" in key)]
    changed = [
        key
        for key, body in before.items()
        if after.get(key) != body and any(part in key for part in IMMUTABLE)
    ]
    return [*new, *changed]


@asynccontextmanager
async def _worker(
    stage: Stage, conversation_id: str, name: str, trap: Trap | None, disk: str = "first"
) -> AsyncIterator[ForkServerProcess]:
    folder = stage.folder / conversation_id
    own = folder / name
    own.mkdir()
    job = Job(
        temporal=stage.address,
        store=stage.url,
        access=stage.access,
        queue=conversation_id,
        folder=own,
        disk=folder / "disks" / disk,
        outside=folder / "outside",
        trap=trap,
    )
    process = FORKS.Process(target=work, args=(job,), daemon=True)
    await asyncio.to_thread(process.start)
    try:
        yield process
        if process.exitcode is None and trap is None:
            await _stopped(process)
    finally:
        process.kill()
        await asyncio.to_thread(process.join)


async def _stopped(process: ForkServerProcess) -> None:
    process.terminate()
    async with asyncio.timeout(PATIENCE):
        while process.is_alive():
            await asyncio.sleep(PAUSE)


async def _played(
    stage: Stage, conversation_id: str, case: Case | None, altered: list[str]
) -> Played:
    folder = stage.folder / conversation_id
    outside = folder / "outside" / conversation_id
    return Played(
        conversation_id=conversation_id,
        case=case,
        folder=folder,
        hit=(folder / "sprung").exists(),
        objects=await _objects(stage, conversation_id),
        deeds={name: _lines(outside / name) for name in ("paid", "jotted")},
        bills=[line for bills in folder.glob("*/bills") for line in _lines(bills)],
        points=[read_point(line) for line in _lines(folder / "first" / "passed")],
        resumed=[read_point(line) for line in _lines(folder / "second" / "passed")],
        altered=altered,
    )


async def _objects(stage: Stage, conversation_id: str) -> Objects:
    return await fetched(stage.store, conversation_prefix("local", conversation_id))


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
