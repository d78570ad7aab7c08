"""Heartbeats of many steps in one process, and of those that are cancelled."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_commands import WorkflowCommand

from perdure.temporal import heartbeats
from perdure.temporal.heartbeats import (
    HeartbeatTimer,
    RunSteps,
    StepKey,
    choose_interval,
    choose_timeout,
)

QUEUE, OTHER_QUEUE = "perdure", "perdure-llm"


def schedule(seq: int, queue: str = QUEUE, timeout: float = 2.0) -> WorkflowCommand:
    command = WorkflowCommand()
    command.schedule_activity.seq = seq
    command.schedule_activity.activity_id = str(seq)
    command.schedule_activity.task_queue = queue
    if timeout:
        command.schedule_activity.heartbeat_timeout.FromTimedelta(timedelta(seconds=timeout))
    return command


def timeout_of(command: WorkflowCommand) -> float:
    return command.schedule_activity.heartbeat_timeout.ToTimedelta().total_seconds()


def cancel(seq: int) -> WorkflowCommand:
    command = WorkflowCommand()
    command.request_cancel_activity.seq = seq
    return command


def resolve(*numbers: int) -> WorkflowActivation:
    activation = WorkflowActivation()
    for seq in numbers:
        activation.jobs.add().resolve_activity.seq = seq
    return activation


def open_steps(run: RunSteps, count: int) -> None:
    run.follow(WorkflowActivation(), [schedule(seq) for seq in range(count)])


@pytest.fixture(autouse=True)
def no_other_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "_open_steps", type(heartbeats._open_steps)())
    monkeypatch.setattr(HeartbeatTimer, "_at_work", 0)


@pytest.mark.parametrize(
    ("steps", "timeout", "seconds"),
    [(0, 2.0, 2.0), (32, 2.0, 2.0), (80, 2.0, 5.0), (80, 10.0, 10.0), (1000, 2.0, 15.0)],
)
def test_of_many_steps_each_may_be_silent_for_longer(
    steps: int, timeout: float, seconds: float
) -> None:
    assert choose_timeout(steps, timeout) == seconds


@pytest.mark.parametrize(
    ("steps", "timeout", "is_reachable", "seconds"),
    [
        (0, 2.0, True, 0.25),
        (5, 2.0, True, 0.25),
        (10, 2.0, True, 0.5),
        (1000, 2.0, True, 0.8),
        (1000, 1.0, True, 0.4),
        (100, 600.0, True, 5.0),
        (1000, 15.0, True, 6.0),
        (1000, 15.0, False, 0.8),
        (4, 15.0, False, 0.25),
        (100, 600.0, False, 5.0),
    ],
)
def test_of_many_steps_each_heartbeats_less_often_but_twice_in_its_timeout(
    steps: int, timeout: float, is_reachable: bool, seconds: float
) -> None:
    assert choose_interval(steps, timeout, is_reachable) == seconds


def test_timeouts_grow_with_the_steps_that_all_runs_wait_for() -> None:
    run, other = RunSteps("run", {QUEUE}), RunSteps("other", {QUEUE})
    open_steps(run, 50)
    open_steps(other, 50)
    [last] = commands = [schedule(100)]
    run.follow(WorkflowActivation(), commands)
    assert timeout_of(last) == 100 / 16
    other.follow(resolve(*range(49)), [next_one := schedule(101)])
    assert timeout_of(next_one) == 52 / 16
    del other  # as when the run is evicted from the cache
    gc.collect()
    run.follow(WorkflowActivation(), [after := schedule(102)])
    assert timeout_of(after) == 51 / 16


def test_timeouts_stay_where_another_process_takes_the_step_and_where_there_is_none() -> None:
    run = RunSteps("run", {QUEUE})
    open_steps(run, 100)
    run.follow(
        WorkflowActivation(),
        [foreign := schedule(100, OTHER_QUEUE), none := schedule(101, QUEUE, 0)],
    )
    assert timeout_of(foreign) == 2.0
    assert not none.schedule_activity.HasField("heartbeat_timeout")


@pytest.fixture
async def timer() -> AsyncIterator[Callable[..., tuple[HeartbeatTimer, list[float]]]]:
    timers = []

    def start(key: StepKey, **more: bool) -> tuple[HeartbeatTimer, list[float]]:
        beats: list[float] = []
        loop = asyncio.get_running_loop()
        timers.append(HeartbeatTimer(key, 600.0, lambda: beats.append(loop.time()), **more))
        return timers[-1], beats

    yield start
    for each in timers:
        each.stop()


async def wait_for(is_true: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not is_true():
            await asyncio.sleep(0.01)


async def test_a_step_that_its_run_cancels_heartbeats_at_once(
    timer: Callable[..., tuple[HeartbeatTimer, list[float]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HeartbeatTimer, "_at_work", 100_000)  # so that none is due for minutes
    run = RunSteps("run", {QUEUE})
    open_steps(run, 3)
    _, beats = timer(StepKey("run", "1"))
    _, others = timer(StepKey("run", "2"))
    replay = WorkflowActivation(is_replaying=True)
    run.follow(replay, [cancel(1)])
    await asyncio.sleep(0.3)
    assert not beats
    await asyncio.to_thread(run.follow, WorkflowActivation(), [cancel(1)])
    await wait_for(lambda: len(beats) >= 3)
    assert not others


async def test_a_step_that_has_ended_is_not_woken(
    timer: Callable[..., tuple[HeartbeatTimer, list[float]]],
) -> None:
    run = RunSteps("run", {QUEUE})
    open_steps(run, 2)
    first, beats = timer(StepKey("run", "1"))
    second, of_second = timer(StepKey("run", "1"))  # another attempt, while the first goes on
    first.hurry()
    first.stop()
    run.follow(WorkflowActivation(), [cancel(1)])
    await wait_for(lambda: len(of_second) >= 2)
    second.stop()
    assert not beats
    run.follow(WorkflowActivation(), [cancel(1), cancel(7)])  # of which nothing is known here
    sent = len(of_second)
    await asyncio.sleep(0.4)
    assert len(of_second) == sent


async def test_only_a_step_whose_run_is_here_or_that_nobody_stops_is_silent_for_long(
    timer: Callable[..., tuple[HeartbeatTimer, list[float]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeats, "MAX_LONGER_TIMEOUT", 600.0)
    monkeypatch.setattr(HeartbeatTimer, "_at_work", 100_000)
    run = RunSteps("run", {QUEUE})
    open_steps(run, 1)
    _, beats_here = timer(StepKey("run", "0"))
    _, beats_in_background = timer(StepKey("other", "0"), background=True)
    _, beats = timer(StepKey("other", "1"))
    await wait_for(lambda: len(beats) >= 2)
    assert not beats_here
    assert not beats_in_background
