"""A small Temporal: attempts at activities, on workers that die or are only thought dead."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from temporalio.activity import ActivityCancellationDetails
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from perdure.agent.loop.local_steps import local_activity_id
from perdure.agent.loop.model_queues import REROUTED_SUFFIX
from perdure.agent.loop.steps import Act, Task
from perdure.storage.log.event_log import EventLog
from reliability.simulation.bucket import Bucket
from reliability.simulation.scheduler import PROCESS, Process, SimulatedLoop
from reliability.simulation.steps import make_activities
from reliability.simulation.world import Effects, make_resources

LOCAL_TIMEOUT = 1.0
"""Seconds after which a local activity is begun again as an ordinary one."""

SILENCE_TIMEOUT = 4.0
"""Seconds after which a worker that says nothing is thought dead."""

BASE = ActivityEnvironment.default_info()
CANCELLED = ActivityCancellationDetails(cancel_requested=True)


class TaskLost(Exception):
    """The workflow task of a local activity is lost, and begun again: nothing of it is known."""


class StepFailed(Exception):
    """The step came to nothing, for good; `kind` is the type of the failure."""

    def __init__(self, kind: str, message: str = "") -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


@dataclass(eq=False)
class Worker(Process):
    """A process with a world of its own, and the activities that it offers."""

    activities: dict[str, Callable[[Any], Any]] = field(default_factory=dict)


@dataclass
class FaultRates:
    """The chances of a crash at a request, of a premature time-out, of a stop."""

    crashes: float
    silences: float
    stops: float


class Temporal:
    """Hands out activities; `ghosts` are attempts that nobody waits for and that go on."""

    def __init__(
        self,
        loop: SimulatedLoop,
        bucket: Bucket,
        weather: FaultRates,
        kind: type[EventLog] = EventLog,
        *,
        local: bool = False,
    ) -> None:
        self.local = local
        self.loop = loop
        self.bucket = bucket
        self.weather = weather
        self.kind = kind
        self.outside = Effects()
        self.workers: list[Worker] = []
        self.ghosts: list[tuple[Worker, asyncio.Task[Any]]] = []
        self.stopped: set[tuple[str, str]] = set()
        self.happened: Counter[str] = Counter()
        loop.crash = self._crashes

    async def execute_locally(self, run: str, task: Task[Any]) -> Any:
        """The result of the local activity, or of the ordinary one that follows it.

        Raises StepFailed, and TaskLost: whoever decided on the step decides again.
        """
        name = local_activity_id(task.step, task.base)
        info = replace(BASE, activity_id=name, workflow_run_id=run, attempt=1, is_local=True)
        try:
            return await self._attempt(info, task, LOCAL_TIMEOUT)
        except (ApplicationError, TimeoutError) as error:
            if isinstance(error, TimeoutError) and self.loop.chance(0.5):
                self.happened["task lost"] += 1
                raise TaskLost from error
        self.happened["begun again"] += 1
        return await self.execute(run, f"{name}{REROUTED_SUFFIX}", task)

    async def execute(self, run: str, name: str, task: Task[Any]) -> Any:
        """The result of the activity; tried again as its kind allows. Raises StepFailed."""
        step = task.step
        once = isinstance(step, Act) and not step.repeatable
        attempt = 0
        while True:
            attempt += 1
            info = replace(BASE, activity_id=name, workflow_run_id=run, attempt=attempt)
            try:
                return await self._attempt(info, task)
            except ApplicationError as error:
                if error.non_retryable:
                    raise StepFailed(error.type or "", error.message) from error
                if once:
                    raise StepFailed("attempts", error.message) from error
                pause = error.next_retry_delay or timedelta(seconds=0.5)
                await asyncio.sleep(pause.total_seconds())
            except TimeoutError as error:
                if once:
                    raise StepFailed("timeout") from error

    async def _attempt(self, info: Any, task: Task[Any], patience: float = SILENCE_TIMEOUT) -> Any:
        kind, worker = task.step.kind, self._worker()
        environment = ActivityEnvironment()
        environment.info = info
        context = copy_context()
        context.run(PROCESS.set, worker)
        name = f"{info.workflow_run_id}/{info.activity_id} {kind} attempt {info.attempt}"
        self.loop.record(f"{name} begins at slot {task.base} on {worker.name}")
        work = environment.run(worker.activities[kind], task)
        job = self.loop.create_task(work, context=context)
        stoppable = kind in ("llm.chat", "tool.call") and not info.is_local
        if stoppable and self._happens(self.weather.stops):
            self.loop.call_later(self.loop.delay(), environment.cancel, CANCELLED)
        quiet = self._happens(self.weather.silences)
        try:
            ended, _ = await asyncio.wait([job], timeout=self.loop.delay() if quiet else patience)
            while not ended and worker.alive and self.loop.now > self.bucket.calm:
                ended, _ = await asyncio.wait([job], timeout=SILENCE_TIMEOUT)
        except asyncio.CancelledError:
            self.ghosts.append((worker, job))
            raise
        if not ended:
            self.ghosts.append((worker, job))
            self.happened["given up" if worker.alive else "lost"] += 1
            self.loop.record(f"{name} is thought dead")
            raise TimeoutError
        self.loop.record(f"{name} ends: {describe_job(job)}")
        try:
            return job.result()
        except asyncio.CancelledError:
            self.happened["stopped"] += 1
            self.stopped.add((info.workflow_run_id, info.activity_id))
            raise StepFailed("cancelled") from None

    async def wait_until_idle(self) -> None:
        """Wait until nothing goes on any more, however long it takes."""
        while living := [job for worker, job in self.ghosts if worker.alive and not job.done()]:
            await asyncio.wait(living, timeout=SILENCE_TIMEOUT)
        for _, job in self.ghosts:
            if job.done() and not job.cancelled():
                self._judge(job.exception())

    def _judge(self, error: BaseException | None) -> None:
        """A ghost succeeds, or ends in a way that somebody thought of."""
        if error is not None:
            if not isinstance(error, ApplicationError):
                raise error
            self.happened[f"ghost: {error.type}"] += 1

    def _worker(self) -> Worker:
        alive = [worker for worker in self.workers if worker.alive]
        if len(alive) < 2:
            alive.append(self._start_worker())
        return self.loop.random.choice(alive)

    def _start_worker(self) -> Worker:
        patience = self.loop.random.choice((0.0, 1e9))
        world = make_resources(self.bucket, self.outside, patience, self.kind)
        worker = Worker(f"worker-{len(self.workers)}", activities=make_activities(world))
        self.workers.append(worker)
        return worker

    def _crashes(self, process: Process) -> bool:
        if process.alive and self._happens(self.weather.crashes):
            process.alive = False
            self.happened["crashed"] += 1
            self.loop.record(f"{process.name} dies")
        return not process.alive

    def _happens(self, probability: float) -> bool:
        return self.loop.now < self.bucket.calm and self.loop.chance(probability)


def describe_job(job: asyncio.Task[Any]) -> str:
    if job.cancelled():
        return "stopped"
    with contextlib.suppress(Exception):
        result = job.result()
        return f"slots {[item.seq for item in result]}" if isinstance(result, list) else "done"
    return str(job.exception())
