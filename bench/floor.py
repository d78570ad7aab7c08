"""The floor: a bare workflow with activities that do nothing: `python -m bench.floor`.

It is a worker as the SDK makes it, on the queue PERDURE_TASK_QUEUE, until SIGTERM. Only the
time-outs of its workflow tasks are those of a conversation, 2 s in place of 10: Temporal has a
timer for each, which would else fire during the next run, and cost that.
"""

import asyncio
import os
from datetime import timedelta

import temporalio.client
from temporalio import activity, workflow
from temporalio.worker import Worker

ACTIVITIES_PER_STEP = 2
"""A step is a think and an act."""

TASK_TIMEOUT = timedelta(seconds=2)
"""The time-out of the floor's workflow tasks, as that of conversations."""


@activity.defn(name="floor.nothing")
async def nothing() -> None:
    return None


@workflow.defn(name="Floor")
class Floor:
    @workflow.run
    async def run(self, activities: int) -> None:
        for _ in range(activities):
            await workflow.execute_activity(
                "floor.nothing", start_to_close_timeout=timedelta(seconds=30)
            )


async def work(queue: str) -> None:
    client = await temporalio.client.Client.connect(os.environ["TEMPORAL_ADDRESS"])
    async with Worker(
        client,
        task_queue=queue,
        workflows=[Floor],
        activities=[nothing],
        sticky_queue_schedule_to_start_timeout=TASK_TIMEOUT,
    ):
        print("polls", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(work(os.environ["PERDURE_TASK_QUEUE"]))
