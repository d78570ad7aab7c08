"""A batch from its first sample to its last, by workers that may be killed all the while."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from examples.bfcl.crew import FORKS, WorkerPool
from examples.bfcl.stage import start_servers
from examples.evals.model import Messages, RequestTimes, serve
from perdure.client.batch.batches import Batches
from perdure.client.batch.handle import BatchHandle
from perdure.client.client import Client
from perdure.evaluation.progress import Progress
from perdure.evaluation.result import SampleResult
from perdure.evaluation.spec import BatchSpec
from perdure.testing.script import Script

Span: TypeAlias = tuple[float, float]

NAME = "evals"
"""Of the bucket, the user and the task queue."""

SURVIVORS = 1
"""Workers left at work by a kill: a new one needs seconds to start, and work should go on."""

POLL_INTERVAL = 5.0
"""Seconds between two looks at how far it is."""


@dataclass(frozen=True)
class Plan:
    """A run: `batch` makes its batch for a model at a URL, `scripts` and `name_of` are that model.

    `warm` is the module that each worker has imported. A worker is killed `kill_every` seconds
    after the last one was replaced, if that is not None; then there must be over SURVIVORS
    `workers`.
    """

    batch: Callable[[str], BatchSpec]
    scripts: Mapping[str, Script]
    name_of: Callable[[Messages], str]
    warm: str
    workers: int = 2
    kill_every: float | None = None


@dataclass
class Run:
    """A batch that has come to its end.

    `seconds` are those of the batch, without the start of what it runs on. A worker died in each of
    the `kills`, from a moment to a moment on the clock of `monotonic`.
    """

    client: Client
    batch: BatchSpec
    asked: RequestTimes
    progress: Progress
    results: list[SampleResult]
    seconds: float
    kills: list[Span] = field(default_factory=list)


@asynccontextmanager
async def run_batch(
    plan: Plan, folder: Path, tell: Callable[[Progress], None]
) -> AsyncIterator[Run]:
    """Run the batch on servers whose files are in `folder`, which are there while inside.

    Raises ProcessFailed (in a group) where a server or a worker ends by itself, and ClientError.
    """
    FORKS.set_forkserver_preload([plan.warm])
    async with (
        start_servers(folder, NAME) as (client, env),
        serve(plan.scripts, plan.name_of) as asked,
        asyncio.TaskGroup() as watch,
    ):
        crew = WorkerPool(client.temporal, NAME, env, folder, watch)
        try:
            for _ in range(plan.workers):
                await crew.start()
            await crew.wait_until_polling(plan.workers)
            kills: list[Span] = []
            striking = asyncio.Lock()
            hunt = watch.create_task(_hunt(plan, crew, kills, striking))
            batch = plan.batch(asked.url)
            start = time.monotonic()
            handle = await Batches.from_client(client).run(batch)
            progress = await _watched(handle, tell)
            seconds = time.monotonic() - start
            async with striking:
                hunt.cancel()
        finally:
            await crew.stop()
        results = [result async for result in handle.folder.read_results()]
        yield Run(client, batch, asked, progress, results, seconds, kills)


async def _watched(handle: BatchHandle, tell: Callable[[Progress], None]) -> Progress:
    """Wait for the end; `tell` hears how far it is meanwhile."""
    ending = asyncio.ensure_future(handle.wait_until_finished())
    try:
        while not ending.done():
            await asyncio.wait((ending,), timeout=POLL_INTERVAL)
            if not ending.done() and (progress := await handle.query_progress()) is not None:
                tell(progress)
        return ending.result()
    finally:
        ending.cancel()


async def _hunt(plan: Plan, crew: WorkerPool, kills: list[Span], striking: asyncio.Lock) -> None:
    """Kill a worker again and again.

    Not to be cancelled while it is `striking`: the worker that is being started would outlive us.
    """
    while plan.kill_every is not None:
        await crew.wait_until_polling(SURVIVORS + 1)
        await asyncio.sleep(plan.kill_every)
        async with striking:
            start = time.monotonic()
            await crew.kill_oldest()
            kills.append((start, time.monotonic()))
