"""The slots of a worker for steps and workflow tasks: a process takes more only while few use it.

Steps that a process does not take yet wait in Temporal's queue, which serves the users in turn.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
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

MAX_COMMON_STEPS = 500
"""The same of the common queue. The workflow runs of most of its steps are in the same process, so
that those which wait cost few heartbeats; what tools start in workspaces has a queue of its own."""

MAX_LOCAL_STEPS = 100
"""The number of steps at once that are part of a workflow task."""

MAX_CACHED_TASKS = 28
"""The number of workflow tasks at once, polls included, of workflows that a worker has in its
cache. A task for which no poll waits is written to Temporal's database and read from there."""

MAX_UNCACHED_TASKS = 2
"""The same of workflows that a worker begins, or replays to go on with them. These take longer, and
those at work would wait behind them."""


class ProcessSlots:
    """The slots of all workers of a process, which share its load."""

    def __init__(self, load: WorkerLoad | None = None) -> None:
        self.load = load = load or WorkerLoad()
        self.lock = threading.Lock()
        self._polls: deque[tuple[QueueSlots, asyncio.Future[SlotPermit | None]]] = deque()
        self._is_due = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        load.on_less = self.issue_soon

    def make_tuner(self, limit: int) -> WorkerTuner:
        """Make the tuner of a worker that takes at most `limit` steps at once."""
        return WorkerTuner.create_composite(
            workflow_supplier=WorkflowSlots(self),
            activity_supplier=QueueSlots(self, limit),
            local_activity_supplier=FixedSizeSlotSupplier(MAX_LOCAL_STEPS),
            nexus_supplier=FixedSizeSlotSupplier(1),
        )

    @property
    def has_waiting_polls(self) -> bool:
        """Tell whether a poll waits until the process has less to do."""
        return bool(self._polls)

    async def wait(self, slots: "QueueSlots") -> SlotPermit | None:
        """Wait for a permit; the poll that waits longest gets the next one.

        Return None if others of its queue have got so many meanwhile that it is full.
        """
        permit: asyncio.Future[SlotPermit | None] = asyncio.get_running_loop().create_future()
        self._polls.append((slots, permit))
        self._issue()
        try:
            return await permit
        except asyncio.CancelledError:
            issued = permit.result() if permit.done() and not permit.cancelled() else None
            if issued is not None:
                slots.take_back(issued)
            raise

    def keep_loop(self) -> asyncio.AbstractEventLoop:
        """Keep the event loop in which this is called, for other threads; return it."""
        self._loop = asyncio.get_running_loop()
        return self._loop

    def issue_soon(self) -> None:
        """Issue the permits for which there is room now. May be called from any thread."""
        if self._polls and not self._is_due:
            self._is_due = True
            self.call_soon(self._issue)

    def call_soon(self, function: Callable[[], None]) -> None:
        """Call a function in the event loop. May be called from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function)

    def _issue(self) -> None:
        self._is_due = False
        for _ in range(len(self._polls)):
            slots, waits = self._polls.popleft()
            if waits.done():
                continue
            permit = slots.issue()
            if permit is not None or slots.is_full():
                waits.set_result(permit)
            else:
                self._polls.append((slots, waits))
        self._set_timer()

    def _set_timer(self) -> None:
        """Look again once the oldest busy step counts as one that waits, or a run may begin."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._polls:
            return
        delays = (self.load.seconds_to_next_end(), self.load.seconds_to_next_run() or None)
        delay = min((it for it in delays if it is not None), default=None)
        if delay is not None and self._loop is not None:
            self._timer = self._loop.call_later(max(delay, 0.01), self._issue)


class _Permit(SlotPermit):
    is_used = False


class _HeldPolls:
    """The polls that wait until fewer slots of their own queue are in use, in their order.

    They are no sign that the process has much to do.
    """

    def __init__(self, process: ProcessSlots, lock: threading.Lock) -> None:
        self._process = process
        self._lock = lock
        self._polls: deque[asyncio.Future[None]] = deque()

    async def wait(self, is_full: Callable[[], bool]) -> None:
        """Wait until a slot may be free. `is_full` is called with the lock held."""
        waits: asyncio.Future[None] = self._process.keep_loop().create_future()
        with self._lock:
            if not is_full():  # a slot became free in this moment
                return
            self._polls.append(waits)
        try:
            await waits
        except asyncio.CancelledError:
            if waits.done() and not waits.cancelled():  # its turn had come
                self._wake()
            raise

    def wake_soon(self) -> None:
        """Wake the poll that waits longest. May be called from any thread."""
        if self._polls:
            self._process.call_soon(self._wake)

    def _wake(self) -> None:
        while self._polls:
            if not (waits := self._polls.popleft()).done():
                waits.set_result(None)
                return


class QueueSlots(CustomSlotSupplier):
    """The slots of the worker of one task queue, which are `limit` at most."""

    def __init__(self, process: ProcessSlots, limit: int) -> None:
        self._process = process
        self._limit = limit
        self._issued = 0
        self._unused = 0
        self._held = _HeldPolls(process, process.lock)

    def is_full(self) -> bool:
        return self._issued >= self._limit

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:  # noqa: ARG002
        process = self._process
        process.keep_loop()
        while True:
            if self.is_full():
                await self._held.wait(self.is_full)
            permit = None if process.has_waiting_polls else self.issue()
            permit = permit or await process.wait(self)
            if permit is not None:
                return permit

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
            if self.is_full() or not has_place:
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
        self._held.wake_soon()
        self._process.issue_soon()


class WorkflowSlots(CustomSlotSupplier):
    """The slots of a worker for workflow tasks.

    Those of workflows that it has in its cache go on at once. To begin a workflow, or to replay
    it, uses the process as a step does, and waits as one.
    """

    def __init__(self, process: ProcessSlots) -> None:
        self._cached = _CachedSlots(process)
        self._uncached = _UncachedSlots(process, MAX_UNCACHED_TASKS)

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:
        return await self._of(ctx.is_sticky).reserve_slot(ctx)

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:
        return self._cached.try_reserve_slot(ctx) if ctx.is_sticky else self._uncached.issue()

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        self._of(isinstance(ctx.permit, _CachedPermit)).mark_slot_used(ctx)

    def release_slot(self, ctx: SlotReleaseContext) -> None:
        self._of(isinstance(ctx.permit, _CachedPermit)).release_slot(ctx)

    def _of(self, is_cached: bool) -> "_CachedSlots | QueueSlots":
        return self._cached if is_cached else self._uncached


class _UncachedSlots(QueueSlots):
    """The slots for workflows that begin or are replayed: only one while steps wait."""

    def issue(self, has_place: bool = False) -> SlotPermit | None:
        others_wait = bool(self._issued) and self._process.has_waiting_polls
        if others_wait or self._process.load.seconds_to_next_run():
            return None
        return super().issue(has_place)


class _CachedSlots(CustomSlotSupplier):
    """The slots for tasks of workflows in the cache of a worker: a fixed number."""

    def __init__(self, process: ProcessSlots) -> None:
        self._lock = threading.Lock()
        self._free = MAX_CACHED_TASKS
        self._held = _HeldPolls(process, self._lock)

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:
        while (permit := self.try_reserve_slot(ctx)) is None:
            await self._held.wait(lambda: not self._free)
        return permit

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:  # noqa: ARG002
        with self._lock:
            if not self._free:
                return None
            self._free -= 1
        return _CachedPermit()

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        """Do nothing: a poll has a slot as a task has."""

    def release_slot(self, ctx: SlotReleaseContext) -> None:  # noqa: ARG002
        with self._lock:
            self._free += 1
        self._held.wake_soon()


class _CachedPermit(SlotPermit):
    """A permit for a task of a workflow in the cache."""


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
