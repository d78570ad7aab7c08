"""The slots of a worker for steps: a process takes another only while few use it.

Steps that a process does not take yet wait in Temporal's queue, which serves the users in turn.
"""

import asyncio
import threading
from collections import deque
from typing import Any

from temporalio import activity
from temporalio.worker import (
    ActivityInboundInterceptor,
    CustomSlotSupplier,
    ExecuteActivityInput,
    FixedSizeSlotSupplier,
    Interceptor,
    SlotMarkUsedContext,
    SlotPermit,
    SlotReleaseContext,
    SlotReserveContext,
    WorkerTuner,
)

from perdure.agent.calls.completion import Completion
from perdure.models.model import Model, OnText, Request
from perdure.temporal.worker_load import WorkerLoad, waiting

MAX_STEPS = 100
"""The default number of steps at once from each task queue, those that wait included."""

MAX_LOCAL_STEPS = 100
"""The number of steps at once that are part of a workflow task."""

MAX_WORKFLOW_TASKS = 4
"""Workflow tasks are Python and share one core: more of them slow each other down until all time
out and start again."""


class ProcessSlots:
    """The slots of all workers of a process, which share its load."""

    def __init__(self, load: WorkerLoad | None = None) -> None:
        self.load = load = load or WorkerLoad()
        self.lock = threading.Lock()
        self._polls: deque[tuple[QueueSlots, asyncio.Future[SlotPermit]]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        load.on_less = self.issue_soon

    def make_tuner(self, limit: int | None) -> WorkerTuner:
        """Make the tuner of a worker that takes at most `limit` steps at once."""
        return WorkerTuner.create_composite(
            workflow_supplier=FixedSizeSlotSupplier(MAX_WORKFLOW_TASKS),
            activity_supplier=QueueSlots(self, limit or MAX_STEPS),
            local_activity_supplier=FixedSizeSlotSupplier(MAX_LOCAL_STEPS),
            nexus_supplier=FixedSizeSlotSupplier(1),
        )

    @property
    def has_waiting_polls(self) -> bool:
        return bool(self._polls)

    async def wait(self, slots: "QueueSlots") -> SlotPermit:
        """Wait for a permit; the poll that waits longest gets the next one."""
        self._loop = asyncio.get_running_loop()
        permit: asyncio.Future[SlotPermit] = self._loop.create_future()
        self._polls.append((slots, permit))
        self._issue()
        try:
            return await permit
        except asyncio.CancelledError:
            if permit.done() and not permit.cancelled():
                slots.take_back(permit.result())
            raise

    def issue_soon(self) -> None:
        """Issue the permits for which there is room now. May be called from any thread."""
        if self._polls and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._issue)

    def _issue(self) -> None:
        for _ in range(len(self._polls)):
            slots, waits = self._polls.popleft()
            if waits.done():
                continue
            permit = slots.issue()
            if permit is None:
                self._polls.append((slots, waits))
            else:
                waits.set_result(permit)
        self._set_timer()

    def _set_timer(self) -> None:
        """Look again once the oldest busy step counts as one that waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        delay = self.load.seconds_to_next_end() if self._polls else None
        if delay is not None and self._loop is not None:
            self._timer = self._loop.call_later(max(delay, 0.01), self._issue)


class _Permit(SlotPermit):
    is_used = False


class QueueSlots(CustomSlotSupplier):
    """The slots of the worker of one task queue, which are `limit` at most."""

    def __init__(self, process: ProcessSlots, limit: int) -> None:
        self._process = process
        self._limit = limit
        self._issued = 0
        self._unused = 0

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:  # noqa: ARG002
        permit = None if self._process.has_waiting_polls else self.issue()
        return permit or await self._process.wait(self)

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:  # noqa: ARG002
        """Issue a permit for a step that would begin eagerly, past its queue; None if it may not.

        It gets the place of the last step of its workflow, if those in the queue may wait for it.
        """
        polls_wait = self._process.has_waiting_polls
        has_place = self._process.load.take_place(polls_wait)
        return self.issue(has_place) if has_place or not polls_wait else None

    def issue(self, has_place: bool = False) -> SlotPermit | None:
        """Issue a permit; None if there is no room for another step."""
        with self._process.lock:
            # A poll that is under way may bring a step at any time.
            has_place = has_place or self._unused < self._process.load.count_free()
            if self._issued >= self._limit or not has_place:
                return None
            self._issued += 1
            self._unused += 1
            return _Permit()

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        permit: Any = ctx.permit
        with self._process.lock:
            permit.is_used = True
            self._unused -= 1

    def release_slot(self, ctx: SlotReleaseContext) -> None:
        self.take_back(ctx.permit)

    def take_back(self, permit: Any) -> None:
        """Take a permit back whose step has ended, or that no step came to use."""
        with self._process.lock:
            self._issued -= 1
            self._unused -= not permit.is_used
        self._process.issue_soon()


class LoadInterceptor(Interceptor):
    """An interceptor that counts the steps of a worker in the load of its process."""

    def __init__(self, load: WorkerLoad) -> None:
        self._load = load

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _StepCounter(next, self._load)


class _StepCounter(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, load: WorkerLoad) -> None:
        super().__init__(next)
        self._load = load

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        self._load.at_work += 1
        try:
            if info.is_local or info.workflow_run_id is None:  # it has no slot
                return await super().execute_activity(input)
            with self._load.count_step(info.workflow_run_id, info.priority.fairness_key or ""):
                return await super().execute_activity(input)
        finally:
            self._load.at_work -= 1


class WaitingModel:
    """A model that leaves the process to other steps until it has answered."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        with waiting():
            return await self._model.complete(request, on_text)
