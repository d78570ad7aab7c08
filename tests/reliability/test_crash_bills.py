"""Answers that are paid for again in crash cases: why, as Temporal's history has it."""

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import uuid4

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.worker import Worker

from perdure.embedded.temporal import TemporalServer
from perdure.temporal.connect import connect
from reliability.crashes.bills import Activity, Bill, count_timeouts, find_unexplained

TWICE = RetryPolicy(initial_interval=timedelta(milliseconds=10), maximum_attempts=2)


@activity.defn(name="silent")
async def fall_silent() -> None:
    """Live, and give no heartbeat the first time."""
    while activity.info().attempt == 1:
        await asyncio.sleep(0.05)


@activity.defn(name="failing")
async def fail_once() -> None:
    if activity.info().attempt == 1:
        raise RuntimeError("not yet")


@workflow.defn(name="TwoSteps", sandboxed=False)
class TwoSteps:
    @workflow.run
    async def run(self) -> None:
        options: dict[str, Any] = {
            "start_to_close_timeout": timedelta(seconds=20),
            "heartbeat_timeout": timedelta(seconds=0.5),
            "retry_policy": TWICE,
        }
        for name in ("silent", "failing"):
            await workflow.execute_activity(name, activity_id=name, **options)


async def test_the_history_tells_an_attempt_that_was_silent_from_one_that_failed(
    temporal_server: TemporalServer,
) -> None:
    client, queue = await connect(temporal_server.address), str(uuid4())
    steps = [fall_silent, fail_once]
    async with Worker(client, task_queue=queue, workflows=[TwoSteps], activities=steps):
        handle = await client.start_workflow("TwoSteps", id=queue, task_queue=queue)
        await handle.result()
    assert await count_timeouts(handle) == {("silent", "silent"): 1}


def test_a_silent_attempt_explains_one_more_payment_of_its_own_answer_and_no_other() -> None:
    due = [Bill("chat 0", "a"), Bill("chat 1", "b")]
    again = [*due, Bill("chat 1", "b")]
    none, of_a, of_b = (Counter(Activity(it, "llm.chat") for it in ids) for ids in ("", "a", "b"))
    assert find_unexplained(due, due, none) == Counter()
    assert find_unexplained(due, again, of_b) == Counter()
    assert find_unexplained(due, again, none) == {"chat 1": 1}
    assert find_unexplained(due, again, of_a) == {"chat 1": 1}
    assert find_unexplained(due, [*again, Bill("chat 1", "b")], of_b) == {"chat 1": 1}
    assert find_unexplained(due, [*due, Bill("chat 1", "c")], of_b) == Counter()
