"""The worker processes, which are killed while they work."""

import asyncio
import itertools
import multiprocessing
from collections.abc import Iterable, Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.client import Client, WorkflowHandle

from examples.bfcl.forked import work
from examples.bfcl.pollers import find_pollers, pid_of
from perdure.embedded.errors import ProcessFailed

# What a worker imports takes longer than one that is killed every few seconds lives, and two cores
# could do nothing else. So each is a fork of one process that has done all imports.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["examples.bfcl.warm"])

LAST_LINES = 20

POLL_INTERVAL = 0.2
"""Seconds between two looks at whether a new worker is at work."""


class WorkerPool:
    """Worker processes; one that is killed is replaced at once.

    One that ends by itself is an error: the tasks in the group `watch` raise ProcessFailed then.
    """

    def __init__(
        self,
        temporal: Client,
        task_queue: str,
        env: Mapping[str, str],
        folder: Path,
        watch: asyncio.TaskGroup,
    ) -> None:
        self.temporal = temporal
        self.task_queue = task_queue
        self._env = env
        self._folder = folder
        self._watch = watch
        self._numbers = itertools.count(1)
        self._members: dict[ForkServerProcess, asyncio.Task[None]] = {}

    async def start(self) -> None:
        """Start a worker."""
        log = self._folder / f"worker-{next(self._numbers)}.log"
        worker = FORKS.Process(target=work, args=(dict(self._env), log), daemon=True)
        await asyncio.to_thread(worker.start)
        self._members[worker] = self._watch.create_task(_watch(worker, log))

    async def kill_oldest(self) -> int:
        """Kill the worker that was started first of those at work, replace it, and give its pid."""
        worker = (await self._polling_workers())[0]
        self._members.pop(worker).cancel()
        worker.kill()
        await asyncio.gather(_ended(worker), self.start())
        assert worker.pid is not None, "it was started"
        return worker.pid

    async def wait_until_polling(self, count: int) -> None:
        """Wait until so many workers ask Temporal for steps to do."""
        while len(await self._polling_workers()) < count:
            await asyncio.sleep(POLL_INTERVAL)

    async def stop(self) -> None:
        """End all of them in good order."""
        for watching in self._members.values():
            watching.cancel()
        for worker in self._members:
            worker.terminate()
        await asyncio.gather(*map(_ended, self._members))

    async def _polling_workers(self) -> list[ForkServerProcess]:
        """List the workers that poll Temporal for steps, in the order of their starts."""
        asking = await find_pollers(self.temporal, self.task_queue)
        return [worker for worker in self._members if worker.pid in asking]


async def _watch(worker: ForkServerProcess, log: Path) -> None:
    """Raises ProcessFailed once the worker has ended."""
    await _ended(worker)
    text = await asyncio.to_thread(log.read_text, errors="replace")
    last = "\n".join(text.splitlines()[-LAST_LINES:])
    raise ProcessFailed(f"A worker ended by itself (exit code {worker.exitcode}):\n{last}")


async def _ended(worker: ForkServerProcess) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(worker.sentinel, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(worker.sentinel)


async def count_running_steps(pid: int, workflows: Iterable[WorkflowHandle[object, object]]) -> int:
    """Count the steps that Temporal believes to be running in the worker process `pid`."""
    described = await asyncio.gather(*(handle.describe() for handle in workflows))
    pending = (step for item in described for step in item.raw_description.pending_activities)
    started = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
    return sum(
        step.state == started and pid_of(step.last_worker_identity) == pid for step in pending
    )
