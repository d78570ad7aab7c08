"""How many steps a worker's process takes at once, and when it takes the next one."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.common import Priority
from temporalio.worker import SlotPermit

from perdure.operations.worker.slots import (
    MAX_CACHED_TASKS,
    MAX_UNCACHED_TASKS,
    ProcessSlots,
    QueueSlots,
    WorkflowSlots,
)
from perdure.temporal import worker_load
from perdure.temporal.worker_load import (
    EAGER_ROUND,
    EAGER_STEPS,
    MAX_BUSY_STEPS,
    WorkerLoad,
    WorkflowRun,
    waiting,
)
from perdure.workflows.sandbox import _ContextFreeInstance

CONTEXT: Any = None
"""What a slot is wanted for, which does not matter here."""


class Process:
    """A process with two queues, each with more steps than it takes, which end when a test says."""

    def __init__(self, limit: int, queue_limit: int = 100, limit_of_one: int | None = None) -> None:
        self.load = WorkerLoad(limit, limit_of_one or limit)
        self.slots = ProcessSlots(self.load)
        self.queue = QueueSlots(self.slots, queue_limit)
        self.other_queue = QueueSlots(self.slots, queue_limit)
        self.at_work: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def begin(
        self,
        name: str,
        run_id: str = "elsewhere",
        queue: QueueSlots | None = None,
        user: str = "mia",
    ) -> None:
        """Poll for a step of this name, which begins as soon as there is a slot."""
        self.ends[name] = asyncio.Event()
        run = self._run(name, run_id, queue or self.queue, user)
        self.tasks[name] = asyncio.create_task(run)
        await settle()

    async def end(self, name: str) -> None:
        self.ends[name].set()
        await self.tasks[name]
        await settle()

    async def _run(self, name: str, run_id: str, queue: QueueSlots, user: str) -> None:
        permit = await queue.reserve_slot(CONTEXT)
        use(queue, permit)
        try:
            with self.load.count_step(run_id, user):
                self.at_work.append(name)
                await self.ends[name].wait()
                self.at_work.remove(name)
        finally:
            queue.take_back(permit)


def use(queue: QueueSlots, permit: SlotPermit) -> None:
    context: Any = SimpleNamespace(permit=permit)
    queue.mark_slot_used(context)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
async def process(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Process]:
    """A process that has two steps at work at once, and takes none for one that waits."""
    monkeypatch.setattr(worker_load, "MAX_BUSY_SECONDS", 3600.0)
    async with open_process(2) as process:
        yield process


@contextlib.asynccontextmanager
async def open_process(limit: int, **more: int) -> AsyncIterator[Process]:
    process = Process(limit, **more)
    yield process
    for task in process.tasks.values():
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_few_steps_are_at_work_at_once(process: Process) -> None:
    for name in ("a", "b", "c", "d"):
        await process.begin(name)
    assert process.at_work == ["a", "b"]
    await process.end("a")
    assert process.at_work == ["b", "c"]
    await process.end("b")
    await process.end("c")
    await process.end("d")
    assert process.at_work == []


async def test_more_steps_are_at_work_where_all_are_one_users(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_load, "MAX_BUSY_SECONDS", 3600.0)
    async with open_process(limit=2, limit_of_one=4) as process:
        for name in ("a", "b", "c"):
            await process.begin(name)
        await process.begin("of another user", user="noa")
        for name in ("d", "e", "f", "g"):
            await process.begin(name)
        assert process.at_work == ["a", "b", "c", "of another user"]
        await process.end("a")
        await process.end("of another user")
        assert process.at_work == ["b", "c"]  # she may have another step soon
        monkeypatch.setattr(worker_load, "ABSENCE_SECONDS", 0.0)
        await process.end("b")
        assert process.at_work == ["c", "d", "e", "f"]


async def test_the_queues_of_a_process_share_its_load(process: Process) -> None:
    await process.begin("a")
    await process.begin("b")
    await process.begin("c", queue=process.other_queue)
    await process.begin("d")
    assert process.at_work == ["a", "b"]
    await process.end("b")
    await process.end("a")
    assert process.at_work == ["c", "d"]


async def test_a_poll_that_has_brought_nothing_yet_takes_a_slot_of_its_queue(
    process: Process,
) -> None:
    idle = [await process.queue.reserve_slot(CONTEXT) for _ in range(2)]
    await process.begin("a")
    await process.begin("b", queue=process.other_queue)
    assert process.at_work == ["b"]
    process.queue.take_back(idle[0])
    await settle()
    assert process.at_work == ["b"]  # the other poll may bring a second one
    await process.end("b")
    assert process.at_work == ["a"]


async def test_a_step_begins_eagerly_while_nothing_waits(process: Process) -> None:
    await process.begin("a")
    assert process.queue.try_reserve_slot(CONTEXT) is not None
    assert process.queue.try_reserve_slot(CONTEXT) is None


async def test_a_step_that_begins_eagerly_has_the_place_of_the_one_before(process: Process) -> None:
    began = [await begin_eagerly(process, str(nth)) for nth in range(2 * EAGER_ROUND)]
    assert began == 2 * [*[True] * (EAGER_ROUND - 1), False]  # those that wait have a turn


async def test_beside_other_users_a_run_begins_some_steps_eagerly_and_then_waits(
    process: Process,
) -> None:
    run = WorkflowRun("mia")
    began = [await begin_eagerly(process, "same", run, "noa") for _ in range(2 * EAGER_STEPS)]
    assert began == 2 * [*[True] * (EAGER_STEPS - 1), False]


async def test_beside_other_users_a_batch_begins_no_step_eagerly(process: Process) -> None:
    run = WorkflowRun("mia", is_of_batch=True)
    assert not any([await begin_eagerly(process, "same", run, "noa") for _ in range(16)])


async def test_beside_other_users_only_a_share_of_a_users_runs_go_on_eagerly() -> None:
    load = WorkerLoad(limit=8)
    with load.count_step("elsewhere", "noa"), load.count_step("elsewhere", "mia"):
        runs = [WorkflowRun("mia") for _ in range(6)]
        for number, run in enumerate(runs):
            load.keep_run(str(number), run)
            load.go_on(run, True)
        assert [load.take_place(True) for _ in runs] == 3 * [False] + 3 * [True]


async def begin_eagerly(
    process: Process, run_id: str, run: WorkflowRun | None = None, other_user: str = "mia"
) -> bool:
    """Tell whether the next step of a run begins while others wait; then end them all."""
    run = run or WorkflowRun("mia")
    process.load.keep_run(run_id, run)
    process.load.go_on(run, False)
    for name in ("first", "other", "in the queue"):
        at, user = (run_id, "mia") if name == "first" else ("elsewhere", other_user)
        await process.begin(name, run_id=at, user=user)
    await process.end("first")
    assert process.at_work == ["other"]
    process.load.go_on(run, True)
    permit = process.queue.try_reserve_slot(CONTEXT)
    await settle()
    assert process.at_work == ["other"] + ["in the queue"] * (permit is None)
    if permit is not None:
        process.queue.take_back(permit)
        await settle()
    await process.end("other")
    await process.end("in the queue")
    return permit is not None


async def test_a_step_that_waits_for_a_tool_leaves_the_process_to_others(process: Process) -> None:
    answered = asyncio.Event()

    async def call_tool() -> None:
        with process.load.count_step("elsewhere", "mia"), waiting():
            await answered.wait()

    calls = [asyncio.create_task(call_tool()) for _ in range(50)]
    await settle()
    for name in ("a", "b", "c"):
        await process.begin(name)
    assert process.at_work == ["a", "b"]
    answered.set()
    await asyncio.gather(*calls)
    assert process.at_work == ["a", "b"]
    await process.end("a")
    assert process.at_work == ["b", "c"]


async def test_those_that_wait_are_limited_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_load, "MAX_BUSY_SECONDS", 0.0)  # all steps are taken to wait
    async with open_process(limit=2, queue_limit=3) as process:
        for name in ("a", "b", "c", "d"):
            await process.begin(name)
        assert process.at_work == ["a", "b", "c"]
        await process.end("b")
        assert process.at_work == ["a", "c", "d"]


async def test_polls_beyond_the_limit_of_their_queue_say_nothing_of_the_process() -> None:
    async with open_process(limit=4, queue_limit=1) as process:
        await process.begin("a")
        await process.begin("b")
        await process.begin("c")
        assert process.at_work == ["a"]
        assert process.other_queue.try_reserve_slot(CONTEXT) is not None
        await process.end("a")
        await process.end("b")
        assert process.at_work == ["c"]


async def test_a_queue_may_become_full_while_its_polls_wait_for_the_process() -> None:
    async with open_process(limit=1, queue_limit=1) as process:
        await process.begin("elsewhere", queue=process.other_queue)
        await process.begin("a")
        await process.begin("b")
        assert process.slots.has_waiting_polls
        await process.end("elsewhere")
        assert process.at_work == ["a"]
        assert not process.slots.has_waiting_polls
        await process.end("a")
        assert process.at_work == ["b"]


@pytest.mark.parametrize("limits", [(4, 1), (1, 4)], ids=["of its queue", "of the process"])
async def test_a_poll_that_is_cancelled_as_its_turn_comes_leaves_it_to_the_next(
    limits: tuple[int, int],
) -> None:
    limit, queue_limit = limits
    async with open_process(limit, queue_limit=queue_limit) as process:
        queue = process.queue
        permit = await queue.reserve_slot(CONTEXT)
        polls = [asyncio.create_task(queue.reserve_slot(CONTEXT)) for _ in range(2)]
        await settle()
        queue.take_back(permit)
        await asyncio.sleep(0)  # the first poll is woken, and has not run yet
        polls[0].cancel()
        await settle()
        assert polls[0].cancelled()
        assert polls[1].done()


async def test_a_step_counts_until_its_workflow_run_goes_on_in_this_process(
    process: Process,
) -> None:
    run = WorkflowRun("mia")
    process.load.keep_run("here", run)
    process.load.go_on(run, False)
    await process.begin("a", run_id="here")
    await process.begin("b")
    await process.begin("c")
    await process.end("a")
    assert process.at_work == ["b"]
    await asyncio.to_thread(process.load.go_on, run, False)
    await settle()
    assert process.at_work == ["b", "c"]
    await process.begin("d", run_id="here")
    del run
    await process.end("b")
    await process.end("d")
    await process.begin("e")
    assert process.at_work == ["c", "e"]


async def test_a_step_that_takes_long_leaves_the_process_to_others(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    await process.begin("a")
    await process.begin("b")
    monkeypatch.setattr(worker_load, "MAX_BUSY_SECONDS", 0.05)
    await process.begin("c")
    async with asyncio.timeout(10):
        await until(lambda: process.at_work == ["a", "b", "c"])


async def test_a_poll_that_is_cancelled_keeps_no_slot(process: Process) -> None:
    for name in ("a", "b", "c", "d"):
        await process.begin(name)
    process.tasks["c"].cancel()
    await settle()
    await process.end("a")
    assert process.at_work == ["b", "d"]
    await process.begin("e")
    await process.end("b")
    assert process.at_work == ["d", "e"]


async def test_who_waits_outside_of_a_step_changes_nothing() -> None:
    with waiting():
        await asyncio.sleep(0)


async def until(is_true: Callable[[], bool]) -> None:
    while not is_true():
        await asyncio.sleep(0.01)


class WorkflowTasks:
    """The workflow tasks of a worker, in its cache or not, which end when a test says."""

    def __init__(self, load: WorkerLoad | None = None) -> None:
        self.process = ProcessSlots(load)
        self.slots = WorkflowSlots(self.process)
        self.polls: list[asyncio.Task[SlotPermit]] = []

    async def poll(self, is_sticky: bool, count: int = 1) -> None:
        context: Any = SimpleNamespace(is_sticky=is_sticky)
        reserve = self.slots.reserve_slot
        self.polls += [asyncio.create_task(reserve(context)) for _ in range(count)]
        await settle()

    async def end(self, nth: int) -> None:
        context: Any = SimpleNamespace(permit=self.polls[nth].result())
        self.slots.mark_slot_used(context)
        self.slots.release_slot(context)
        await settle()

    def count_answered(self) -> int:
        return sum(poll.done() for poll in self.polls)


@pytest.fixture
async def tasks() -> AsyncIterator[WorkflowTasks]:
    tasks = WorkflowTasks()
    yield tasks
    for poll in tasks.polls:
        poll.cancel()


async def test_workflow_tasks_in_the_cache_and_others_have_slots_of_their_own(
    tasks: WorkflowTasks,
) -> None:
    await tasks.poll(True, MAX_CACHED_TASKS + 1)
    assert tasks.count_answered() == MAX_CACHED_TASKS
    await tasks.poll(False, MAX_UNCACHED_TASKS + 1)
    assert tasks.count_answered() == MAX_CACHED_TASKS + MAX_UNCACHED_TASKS
    await tasks.end(0)
    assert tasks.polls[MAX_CACHED_TASKS].done()
    assert not tasks.polls[-1].done()
    await tasks.end(-2)
    assert tasks.polls[-1].done()


async def test_workflows_begin_by_turns_with_steps_where_a_process_has_much_to_do() -> None:
    load = WorkerLoad(limit=2, limit_of_one=2)
    tasks = WorkflowTasks(load)
    step = QueueSlots(tasks.process, 100)
    with load.count_step("elsewhere", "mia"), load.count_step("elsewhere", "noa"):
        await tasks.poll(False)
        await tasks.poll(True)
        waits = asyncio.create_task(step.reserve_slot(CONTEXT))
        await settle()
        assert [poll.done() for poll in tasks.polls] == [False, True]
    await settle()
    assert tasks.polls[0].done()
    assert waits.done()


async def test_a_poll_that_is_cancelled_leaves_its_turn_to_the_next(tasks: WorkflowTasks) -> None:
    await tasks.poll(True, MAX_CACHED_TASKS + 2)
    context: Any = SimpleNamespace(permit=tasks.polls[0].result())
    tasks.slots.release_slot(context)
    await asyncio.sleep(0)  # the poll is woken, and has not run yet
    tasks.polls[-2].cancel()
    await settle()
    assert tasks.polls[-1].done()
    assert not tasks.polls[-1].cancelled()


def test_runs_of_one_user_behind_each_other_leave_room_for_those_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1000.0
    monkeypatch.setattr(worker_load, "monotonic", lambda: now)
    load = WorkerLoad()
    runs = [WorkflowRun("mia") for _ in range(40)]
    with contextlib.ExitStack() as steps:
        load.keep_run("0", runs[0])
        load.keep_run("1", runs[1])
        assert load.seconds_to_next_run() == 0  # only she has steps, and few use the process
        for number in range(MAX_BUSY_STEPS):
            steps.enter_context(load.count_step("elsewhere", f"user {number % 10}"))
        load.keep_run("2", runs[2])
        assert load.seconds_to_next_run() == pytest.approx(10 * worker_load.RUN_PAUSE)
        load.keep_run("of another", WorkflowRun("noa"))
        assert load.seconds_to_next_run() == pytest.approx(10 * worker_load.RUN_PAUSE)
        for number, run in enumerate(runs):
            load.keep_run(str(number), run)
        assert load.seconds_to_next_run() == worker_load.MAX_RUN_PAUSE
        now += worker_load.MAX_RUN_PAUSE
        assert load.seconds_to_next_run() == 0


class ReplayedInstance:
    """A workflow instance that has a next step in each of its activations."""

    def activate(self, act: Any) -> Any:  # noqa: ARG002
        completion = WorkflowActivationCompletion()
        completion.successful.commands.add().schedule_activity.task_queue = "queue"
        return completion


def test_a_run_that_is_replayed_keeps_a_place_for_its_next_step_only() -> None:
    load = WorkerLoad(limit=4)
    info: Any = SimpleNamespace(
        workflow_id="conv", run_id="run", task_queue="queue", priority=Priority(fairness_key="mia")
    )
    replayed: Any = ReplayedInstance()
    instance = _ContextFreeInstance(replayed, info, None, load)
    assert load.count_free() == load.limit_of_one - 1
    for is_replaying in (True, True, False):
        instance.activate(WorkflowActivation(is_replaying=is_replaying))
    assert load.take_place(False)
    assert load.count_free() == load.limit_of_one
    with load.count_step("run", ""):  # it began eagerly: Temporal does not say whose it is
        assert set(load._open_steps) == {"mia"}
    assert load.count_free() == load.limit_of_one - 1
    assert not load.take_place(False), "the run has yet to go on, and has no next step"
