"""All that a conversation needs on one machine: Temporal, a store, and a worker kept alive."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Self, TypeVar

import platformdirs

from embedded.files import make_folder
from embedded.lock import FolderLock, is_taken
from embedded.probe import http_status, listening
from embedded.record import StackInfo, environ, read, remove, write
from embedded.seaweed import Seaweed
from embedded.supervisor import Supervisor
from embedded.temporal import NAMESPACE, Codec, TemporalServer

BUCKET = "perdure"

# By its path and not with -m, which would import a `tools` or a `client` of the current folder.
WORKER = (sys.executable, str(Path(__file__).resolve().parent.parent / "worker.py"))

logger = logging.getLogger("perdure.stack")

Server = TemporalServer | Seaweed
AnyServer = TypeVar("AnyServer", TemporalServer, Seaweed)


class Stack:
    """A running stack; it lives as long as the process that started it."""

    def __init__(
        self,
        folder: Path,
        temporal: TemporalServer,
        store: Seaweed,
        worker: Sequence[str],
        say: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._temporal = temporal
        self._store = store
        self._say = say
        self._ending = AsyncExitStack()
        env = environ(os.environ, self._environment)
        self._worker = Supervisor("worker", worker, _worker_log(folder), env, self._restarted)

    @classmethod
    async def start(
        cls,
        folder: Path | None = None,
        ui: bool = True,
        worker: Sequence[str] = WORKER,
        say: Callable[[str], None] = logger.warning,
        codec: Codec | None = None,
    ) -> Self:
        """Starts all of it in `folder`, by default the person's data folder for perdure.

        What an earlier stack kept there is found again. `worker` is the command to keep running,
        its first word a path; `say` is given a line whenever it had to be started again; `codec`
        decrypts payloads for the page of Temporal. Raises FolderTaken where another stack has the
        folder, FolderUnusable, and ProcessFailed where a part does not come up; nothing is left
        running then.
        """
        folder = _chosen(folder)
        make_folder(folder)
        async with AsyncExitStack() as ending:
            ending.callback((await FolderLock.take(folder)).release)
            ending.callback(remove, folder)
            _forget_last_start(folder)
            temporal, store = await _servers(folder, ui, codec, ending)
            await store.make_bucket(BUCKET)
            stack = cls(folder, temporal, store, worker, say)
            await stack._worker.start()
            ending.push_async_callback(stack._worker.stop)
            write(stack.info)
            stack._ending = ending.pop_all()
        return stack

    @property
    def info(self) -> StackInfo:
        """Where its parts are at this moment."""
        return StackInfo(
            folder=self._folder,
            temporal=self._temporal.address,
            ui=self._temporal.ui_url,
            codec=self._temporal.codec_url,
            store=self._store.endpoint,
            bucket=BUCKET,
            pids={
                "supervisor": os.getpid(),
                "temporal": self._temporal.pid,
                "weed": self._store.pid,
                "worker": self._worker.pid,
            },
            environment=self._environment,
        )

    async def wait(self) -> None:
        """Raises ProcessFailed once a server has gone down or the worker cannot be run any more."""
        await asyncio.gather(
            self._temporal.process.watch(), self._store.process.watch(), self._worker.watch()
        )

    async def stop(self) -> None:
        """Ends the worker, then the servers; what they keep stays in the folder."""
        await self._ending.aclose()

    @property
    def _environment(self) -> dict[str, str]:
        return {
            "PERDURE_DATA": str(self._folder),
            "PERDURE_STORE": f"s3://{BUCKET}",
            "TEMPORAL_ADDRESS": self._temporal.address,
            "TEMPORAL_NAMESPACE": NAMESPACE,
            "TEMPORAL_CONFIG_FILE": os.devnull,  # a person's own may name keys of another server
            "AWS_ENDPOINT_URL_S3": self._store.endpoint,
            "AWS_ACCESS_KEY_ID": self._store.access_key,
            "AWS_SECRET_ACCESS_KEY": self._store.secret_key,
            "AWS_REGION": "us-east-1",
        }

    def _restarted(self, line: str) -> None:
        write(self.info)
        self._say(line)


async def find(folder: Path | None = None) -> StackInfo | None:
    """The stack that runs in `folder` and answers, if one does."""
    folder = _chosen(folder)
    info = read(folder) if is_taken(folder) else None
    if info is None:
        return None
    temporal, store = await asyncio.gather(
        listening(_port(info.temporal)), http_status("GET", _port(info.store), "/healthz")
    )
    return info if temporal and store == 200 else None


def _chosen(folder: Path | None) -> Path:
    return (folder or platformdirs.user_data_path("perdure")).absolute()


def _forget_last_start(folder: Path) -> None:
    remove(folder)
    _worker_log(folder).unlink(missing_ok=True)


def _worker_log(folder: Path) -> Path:
    return folder / "worker.log"


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


async def _servers(
    folder: Path, ui: bool, codec: Codec | None, ending: AsyncExitStack
) -> tuple[TemporalServer, Seaweed]:
    running: list[Server] = []
    ending.push_async_callback(_stop_all, running)
    try:
        async with asyncio.TaskGroup() as both:
            temporal = both.create_task(
                _noted(running, TemporalServer.start(folder / "temporal", ui, codec))
            )
            store = both.create_task(_noted(running, Seaweed.start(folder / "seaweed")))
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    return temporal.result(), store.result()


async def _noted(running: list[Server], start: Coroutine[Any, Any, AnyServer]) -> AnyServer:
    server = await start
    running.append(server)
    return server


async def _stop_all(running: list[Server]) -> None:
    await asyncio.gather(*(server.stop() for server in running))
