"""The worker processes, which are killed while they work."""

import asyncio
import itertools
import os
import signal
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from temporalio.api.enums.v1 import (
    DescribeTaskQueueMode,
    PendingActivityState,
    TaskQueueType,
)
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client, WorkflowHandle

from embedded.process import ChildProcess

WORKER = Path(__file__).resolve().parents[2] / "worker.py"

POLL = 0.2
"""Seconds between two looks at whether a new worker is at work."""


class Crew:
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
        self._members: dict[ChildProcess, asyncio.Task[None]] = {}

    async def hire(self) -> None:
        """Start a worker."""
        name = f"worker-{next(self._numbers)}"
        command = [sys.executable, str(WORKER)]
        log = self._folder / f"{name}.log"
        worker = await ChildProcess.start(name, command, log, self._env, self._folder)
        self._members[worker] = self._watch.create_task(worker.watch())

    async def kill_oldest(self) -> int:
        """Kill the worker that was started first of those at work, replace it, and give its pid."""
        worker = (await self._at_work())[0]
        self._members.pop(worker).cancel()
        os.kill(worker.pid, signal.SIGKILL)
        await asyncio.gather(worker.wait(), self.hire())
        return worker.pid

    async def until_at_work(self, count: int) -> None:
        """Wait until so many workers ask Temporal for steps to do."""
        while len(await self._at_work()) < count:
            await asyncio.sleep(POLL)

    async def stop(self) -> None:
        """End all of them in good order."""
        for watching in self._members.values():
            watching.cancel()
        await asyncio.gather(*(worker.stop() for worker in self._members))

    async def _at_work(self) -> list[ChildProcess]:
        """Those that ask Temporal for steps to do, in the order in which they were started."""
        kind = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
        request = DescribeTaskQueueRequest(
            namespace=self.temporal.namespace,
            task_queue=TaskQueue(name=self.task_queue),
            # The plain mode sees one of the queue's partitions only.
            api_mode=DescribeTaskQueueMode.DESCRIBE_TASK_QUEUE_MODE_ENHANCED,
            task_queue_types=[kind],
            report_pollers=True,
        )
        described = await self.temporal.workflow_service.describe_task_queue(request)
        versions = described.versions_info.values()
        pollers = (poller for one in versions for poller in one.types_info[kind].pollers)
        asking = {_pid(poller.identity) for poller in pollers}
        return [worker for worker in self._members if worker.pid in asking]


async def steps_held_by(pid: int, workflows: Iterable[WorkflowHandle[object, object]]) -> int:
    """How many steps Temporal believes to be running in the worker process `pid`."""
    described = await asyncio.gather(*(handle.describe() for handle in workflows))
    pending = (step for one in described for step in one.raw_description.pending_activities)
    started = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
    return sum(step.state == started and _pid(step.last_worker_identity) == pid for step in pending)


def _pid(identity: str) -> int:
    """A worker's identity is its pid, an @ and its host."""
    return int(identity.partition("@")[0])
