"""A worker as it is, but for the points that it passes; each is a fork of a process that is warm.

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

from client.connect import connect
from models.models import Models
from storage.open import open_store
from storage.s3 import S3Access
from tests.crashes.deeds import OUTSIDE
from tests.crashes.points import Points, Trap
from tests.crashes.watched import WatchedModel, WatchedSteps, WatchedStore, WatchedWorld
from worker import build_worker, build_worker_at_home, home_of

PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Job:
    """What a worker is told; `folder` is for what it leaves behind, `disk` for the workspaces."""

    temporal: str
    store: str
    access: S3Access | None
    queue: str
    folder: Path
    disk: Path
    outside: Path
    trap: Trap | None = None


def work(job: Job) -> None:
    """Be a worker until a SIGTERM."""
    _stand_alone()
    with (job.folder / "output").open("ab") as output:
        os.dup2(output.fileno(), sys.stdout.fileno())
        os.dup2(output.fileno(), sys.stderr.fileno())
    os.environ[OUTSIDE] = str(job.outside)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    asyncio.run(_work(job))


async def _work(job: Job) -> None:
    points = Points(job.folder / "passed", job.trap)
    config = (await connect(job.temporal)).config()
    config["interceptors"] = [WatchedSteps(points)]
    client = temporalio.client.Client(**config)
    world = WatchedWorld(
        WatchedStore(open_store(job.store, job.access), points),
        WatchedModel(Models(), points, job.folder / "bills"),
        job.disk,
        home=home_of(job.disk, job.queue),
        points=points,
    )
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with build_worker(client, job.queue, world), build_worker_at_home(client, world):
        await stop.wait()
    (job.folder / "ended").touch()


def _stand_alone() -> None:
    """No ^C in the terminal reaches it; it ends with its parent, also where it stands still."""
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
