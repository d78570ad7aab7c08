"""Signals that came after a workflow had seen a part of its history are found in the rest."""

import asyncio
import contextlib
import dataclasses
import uuid
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import temporalio.client
from temporalio import workflow
from temporalio.testing import ActivityEnvironment
from temporalio.worker import Worker

from perdure.activities.support.late_signals import has_late_signals, search_late_signals

TIMERS = 8
"""Workflow tasks behind the signal, each of which writes events of its own."""


@workflow.defn(sandboxed=False)
class Sleeper:
    """Waits for a signal, and then for several timers."""

    def __init__(self) -> None:
        self.has_signal = False

    @workflow.signal
    def wake(self) -> None:
        self.has_signal = True

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: self.has_signal)
        for _ in range(TIMERS):
            await workflow.sleep(timedelta(milliseconds=1))


@pytest.fixture
async def sleeper(
    temporal: temporalio.client.Client,
) -> AsyncIterator[temporalio.client.WorkflowHandle[Sleeper, None]]:
    """A workflow that waits; behind its first task a signal is in its history at once."""
    queue = f"test-{uuid.uuid4()}"
    async with Worker(temporal, task_queue=queue, workflows=[Sleeper]):
        handle = await temporal.start_workflow(Sleeper.run, id=queue, task_queue=queue)
        async with asyncio.timeout(60):
            while not await has_completed_task(handle):
                await asyncio.sleep(0.02)
        yield handle


async def has_completed_task(
    handle: temporalio.client.WorkflowHandle[Sleeper, None],
) -> bool:
    events = (await handle.fetch_history()).events
    return any(event.HasField("workflow_task_completed_event_attributes") for event in events)


def in_activity_of(
    handle: temporalio.client.WorkflowHandle[Sleeper, None], client: temporalio.client.Client
) -> ActivityEnvironment:
    environment = ActivityEnvironment(client)
    environment.info = dataclasses.replace(
        environment.info, workflow_id=handle.id, workflow_run_id=handle.first_execution_run_id
    )
    return environment


async def test_a_signal_is_found_behind_many_later_events(
    temporal: temporalio.client.Client, sleeper: temporalio.client.WorkflowHandle[Sleeper, None]
) -> None:
    await sleeper.signal(Sleeper.wake)
    await sleeper.result()
    events = (await sleeper.fetch_history()).events
    [signal] = [
        event.event_id
        for event in events
        if event.HasField("workflow_execution_signaled_event_attributes")
    ]
    assert len(events) - signal > 3 * TIMERS
    environment = in_activity_of(sleeper, temporal)
    for seen in (0, signal - 2, signal - 1):
        assert await environment.run(has_late_signals, seen), seen
    for seen in (signal, signal + 1, len(events)):
        assert not await environment.run(has_late_signals, seen), seen


async def test_a_cancel_request_counts_as_a_signal(
    temporal: temporalio.client.Client, sleeper: temporalio.client.WorkflowHandle[Sleeper, None]
) -> None:
    environment = in_activity_of(sleeper, temporal)
    assert not await environment.run(has_late_signals, 1)
    await sleeper.cancel()
    assert await environment.run(has_late_signals, 1)


async def test_an_end_of_the_body_ends_the_search(
    temporal: temporalio.client.Client, sleeper: temporalio.client.WorkflowHandle[Sleeper, None]
) -> None:
    environment = in_activity_of(sleeper, temporal)

    async def prepare() -> tuple[bool, bool, bool]:
        with search_late_signals(None) as nothing:
            first, again = await nothing, await nothing
        before = asyncio.all_tasks()
        with contextlib.suppress(KeyError), search_late_signals(1):
            searches = asyncio.all_tasks() - before
            raise KeyError
        await asyncio.wait(searches)
        assert [search.cancelled() for search in searches] == [True]
        with search_late_signals(1) as is_late:
            return first, again, await is_late

    assert await environment.run(prepare) == (False, False, False)
    await sleeper.signal(Sleeper.wake)
    assert await environment.run(prepare) == (False, False, True)
