"""The embedded stack: Temporal, a store and a supervised worker on one machine."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

from perdure.embedded.folder import lock_folder, make_folder
from perdure.embedded.record import (
    StackInfo,
    merge_environment,
    provider_variables,
    remove_stack_info,
    write_stack_info,
)
from perdure.embedded.seaweed import Seaweed
from perdure.embedded.supervisor import Supervisor
from perdure.embedded.temporal import TEMPORAL_NAMESPACE, CodecStarter, TemporalServer

STACK_BUCKET = "perdure"
WORKER_LOG = "worker.log"

# Without -P, a module in the current folder would shadow an installed one.
WORKER_COMMAND = (sys.executable, "-P", "-m", "perdure.worker")

logger = logging.getLogger("perdure.stack")

ServerT = TypeVar("ServerT", TemporalServer, Seaweed)


@dataclass
class Stack:
    """A running stack, which ends with the process that started it."""

    _folder: Path
    _temporal: TemporalServer
    _store: Seaweed
    _report: Callable[[str], None]
    _worker: Supervisor = field(init=False)
    _exit_stack: AsyncExitStack = field(init=False)

    @classmethod
    async def start(
        cls,
        folder: Path,
        ui: bool = True,
        worker: Sequence[str] = WORKER_COMMAND,
        report: Callable[[str], None] = logger.warning,
        codec: CodecStarter | None = None,
    ) -> Self:
        """Start a stack in `folder`.

        The data of earlier stacks in the folder is used. `worker` is the worker's command, its
        first word a path; `report` is called with a line whenever the worker was restarted;
        `codec` decrypts payloads for Temporal's UI. Raises FolderTaken if another stack has the
        folder, FolderUnusable, and ProcessFailed if a part does not start; nothing is left running
        then.
        """
        folder = make_folder(folder)
        async with AsyncExitStack() as exit_stack:
            exit_stack.enter_context(await lock_folder(folder))
            exit_stack.callback(remove_stack_info, folder)
            remove_stack_info(folder)
            (folder / WORKER_LOG).unlink(missing_ok=True)
            temporal, store = await _start_servers(folder, ui, codec, exit_stack)
            await store.make_bucket(STACK_BUCKET)
            stack = cls(folder, temporal, store, report)
            env, log = merge_environment(os.environ, stack._environment), folder / WORKER_LOG
            env["PERDURE_CLIENT_CODE"] = "true"  # all clients of a stack are of its owner
            stack._worker = Supervisor("worker", worker, log, env, stack._on_restart)
            await stack._worker.start()
            exit_stack.push_async_callback(stack._worker.stop)
            write_stack_info(stack.info)
            stack._exit_stack = exit_stack.pop_all()
        return stack

    @property
    def info(self) -> StackInfo:
        """Return the present addresses and processes."""
        return StackInfo(
            folder=self._folder,
            temporal=self._temporal.address,
            ui=self._temporal.ui_url,
            codec=self._temporal.codec_url,
            store=self._store.endpoint,
            bucket=STACK_BUCKET,
            pids={
                "supervisor": os.getpid(),
                "temporal": self._temporal.pid,
                "weed": self._store.pid,
                "worker": self._worker.pid,
            },
            environment=self._environment,
            worker_variables=provider_variables(os.environ),
        )

    async def wait(self) -> None:
        """Wait, and raise ProcessFailed when a server ended or the worker cannot restart."""
        await asyncio.gather(
            self._temporal.process.watch(), self._store.process.watch(), self._worker.watch()
        )

    async def stop(self) -> None:
        """Stop the worker, then the servers; their data stays in the folder."""
        await self._exit_stack.aclose()

    @property
    def _environment(self) -> dict[str, str]:
        return {
            "PERDURE_DATA": str(self._folder),
            "PERDURE_STORE": f"s3://{STACK_BUCKET}",
            "TEMPORAL_ADDRESS": self._temporal.address,
            "TEMPORAL_NAMESPACE": TEMPORAL_NAMESPACE,
            "TEMPORAL_CONFIG_FILE": os.devnull,  # it may name keys of another server
            "AWS_ENDPOINT_URL_S3": self._store.endpoint,
            "AWS_ACCESS_KEY_ID": self._store.access_key,
            "AWS_SECRET_ACCESS_KEY": self._store.secret_key,
            "AWS_REGION": "us-east-1",
        }

    def _on_restart(self, line: str) -> None:
        write_stack_info(self.info)
        self._report(line)


async def _start_servers(
    folder: Path, ui: bool, codec: CodecStarter | None, exit_stack: AsyncExitStack
) -> tuple[TemporalServer, Seaweed]:
    running: list[TemporalServer | Seaweed] = []

    async def track(start: Coroutine[Any, Any, ServerT]) -> ServerT:
        running.append(server := await start)
        return server

    async def stop_all() -> None:
        await asyncio.gather(*(server.stop() for server in running))

    exit_stack.push_async_callback(stop_all)
    try:
        async with asyncio.TaskGroup() as both:
            temporal = both.create_task(track(TemporalServer.start(folder / "temporal", ui, codec)))
            store = both.create_task(track(Seaweed.start(folder / "seaweed")))
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    return temporal.result(), store.result()
