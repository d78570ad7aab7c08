"""A client of one checkout, which runs what it reads: `python -m bench.client`.

Every line of stdin is a job as JSON, and is answered by a line on stdout. It runs against any
checkout that is first in PYTHONPATH, so it uses little of it: `Client`, `Agent` and the log.
"""

import asyncio
import json
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from temporalio.api.enums.v1 import EventType

import perdure
from perdure import Agent, Client

JSON = dict[str, Any]

READ_CONCURRENCY = 8
"""Conversations that are read at a time, after they have been measured."""


def answer(job: JSON, client: Client) -> Awaitable[Any]:
    """Do one job; a job names one of `JOBS`, and has its arguments."""
    return JOBS[job.pop("job")](client, **job)


async def find_origin(_: Client) -> str:
    """Return the folder of the checkout whose modules these are."""
    return str(Path(perdure.__file__).parents[1])


async def run_conversations(
    client: Client, agent: JSON, count: int, concurrency: int
) -> list[JSON]:
    """Run conversations to their ends, `concurrency` of them at a time."""
    spec = Agent.model_validate(agent)

    async def run() -> JSON:
        began = time.time()
        talk = await client.start("Add, again and again.", spec)
        # The result, not a tail of the log: looking at the log would cost what is measured.
        outcome = await talk.handle.result()
        if outcome.status != "finished":
            raise SystemExit(f"A conversation ended as {outcome.status}: {outcome.reason}.")
        return {"id": talk.id, "workflow_id": talk.workflow_id, "began": began}

    return await run_side_by_side([run] * count, concurrency)


async def run_floors(
    client: Client, queue: str, activities: int, task_timeout: float, count: int, concurrency: int
) -> list[JSON]:
    """Run bare workflows to their ends, `concurrency` of them at a time; the time-out is in s."""

    async def run() -> JSON:
        began, id = time.time(), f"floor-{uuid.uuid4()}"
        handle = await client.temporal.start_workflow(
            "Floor",
            activities,
            id=id,
            task_queue=queue,
            task_timeout=timedelta(seconds=task_timeout),
        )
        await handle.result()
        return {"id": id, "workflow_id": id, "began": began}

    return await run_side_by_side([run] * count, concurrency)


async def run_side_by_side(
    runs: Sequence[Callable[[], Awaitable[JSON]]], concurrency: int
) -> list[JSON]:
    room = asyncio.Semaphore(concurrency)

    async def run_when_there_is_room(run: Callable[[], Awaitable[JSON]]) -> JSON:
        async with room:
            return await run()

    return await asyncio.gather(*map(run_when_there_is_room, runs))


async def read_conversations(client: Client, ids: Sequence[str]) -> list[JSON]:
    """Read when the steps of conversations ended, and when they were answered, by their logs."""
    reads = [partial(read_conversation, client, id) for id in ids]
    return await run_side_by_side(reads, READ_CONCURRENCY)


async def read_conversation(client: Client, id: str) -> JSON:
    log = client.conversation(id).log
    events = [entry.event for entry in await log.read(0, await log.end())]

    def find_times(kind: str) -> list[float]:
        return [to_seconds(event.timestamp) for event in events if type(event).__name__ == kind]

    return {"steps": find_times("ObservationEvent"), "answered": find_times("MessageEvent")[-1]}


async def read_floors(client: Client, ids: Sequence[str]) -> list[JSON]:
    """Read when the steps of bare workflows ended, by their histories."""
    reads = [partial(read_floor, client, id) for id in ids]
    return await run_side_by_side(reads, READ_CONCURRENCY)


async def read_floor(client: Client, id: str) -> JSON:
    handle = client.temporal.get_workflow_handle(id)
    at = [
        event.event_time.ToNanoseconds() / 1e9
        async for event in handle.fetch_history_events()
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED
    ]
    return {"steps": at[1::2], "answered": at[-1]}


def to_seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).replace(tzinfo=UTC).timestamp()


JOBS: dict[str, Callable[..., Awaitable[Any]]] = {
    "origin": find_origin,
    "conversations": run_conversations,
    "floors": run_floors,
    "read_conversations": read_conversations,
    "read_floors": read_floors,
}


async def main() -> None:
    client = await Client.connect()
    while line := await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps(await answer(json.loads(line), client)), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
