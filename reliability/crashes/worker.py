"""A worker with crash points, forked from a process that has done the imports.

What a worker imports takes longer than one that is killed at once lives.
"""

import asyncio
import ctypes
import logging
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import temporalio.client

from perdure.models.router import ModelRouter
from perdure.operations.worker.process import workspace_queue
from perdure.storage.open import open_store
from perdure.storage.store import S3Access
from perdure.temporal.connect import connect
from perdure.worker import build_worker, build_workspace_worker
from reliability.crashes.instrumented import (
    InstrumentedMemories,
    InstrumentedModel,
    InstrumentedResources,
    InstrumentedSandbox,
    InstrumentedStore,
    StepInterceptor,
)
from reliability.crashes.points import Points, Trap
from reliability.crashes.tools import EFFECTS_FOLDER
from tests.secrets.keys import key_ring

PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class WorkerJob:
    """The job of a worker; `folder` takes its output, `disk` the workspaces."""

    temporal: str
    store: str
    access: S3Access | None
    queue: str
    folder: Path
    disk: Path
    outside: Path
    trap: Trap | None = None
    secret_key: str | None = None
    """The name of the key for what users hand in."""


def run_worker(job: WorkerJob) -> None:
    """Be a worker until a SIGTERM."""
    detach_from_terminal()
    with (job.folder / "output").open("ab") as output:
        os.dup2(output.fileno(), sys.stdout.fileno())
        os.dup2(output.fileno(), sys.stderr.fileno())
    os.environ[EFFECTS_FOLDER] = str(job.outside)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    asyncio.run(serve_worker(job))


async def serve_worker(job: WorkerJob) -> None:
    points = Points(job.folder / "passed", job.trap)
    config = (await connect(job.temporal)).config()
    config["interceptors"] = [StepInterceptor(points)]
    client = temporalio.client.Client(**config)
    store = InstrumentedStore(open_store(job.store, job.access), points)
    world = InstrumentedResources(
        store,
        InstrumentedModel(ModelRouter(), points, job.folder / "bills"),
        job.disk,
        home=workspace_queue(job.disk, job.queue),
        secret_keys=None if job.secret_key is None else key_ring(job.secret_key),
        sandbox=InstrumentedSandbox(points=points),
        memories=InstrumentedMemories(store),
        points=points,
    )
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with build_worker(client, job.queue, world), build_workspace_worker(client, world):
        await stop.wait()
    (job.folder / "ended").touch()


def detach_from_terminal() -> None:
    """No ^C in the terminal reaches it; it ends with its parent, also where it stands still."""
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
