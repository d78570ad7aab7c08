"""The status of a conversation as events, which clients are told of while it changes.

What lasts follows from the log; what lasts for a moment only (a step that loads, a model that is
asked again) is said by the steps at work, and stands in no log.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from perdure.agent.loop.evolve import fold
from perdure.agent.loop.start import ConversationStatus, build_status
from perdure.client.events.make import utc_now
from perdure.client.running_step import RunningStep, StepsAtWork, with_steps
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.projection import summarize
from perdure.storage.log.readable import ReadableLog
from perdure.storage.log.state import read_state


def make_status_event(status: ConversationStatus) -> ConversationStateUpdateEvent:
    """Make the event that tells a client of a status, as of now."""
    return ConversationStateUpdateEvent(
        timestamp=utc_now(),
        key="status",
        value=status.phase or status.status,
        status_detail=status.detail,
    )


async def distinct_events(
    statuses: AsyncIterator[ConversationStatus],
) -> AsyncGenerator[ConversationStateUpdateEvent, None]:
    """Yield an event for each status that says something else; end once it is closed."""
    told: ConversationStateUpdateEvent | None = None
    async for status in statuses:
        event = make_status_event(status)
        if told is not None and _says(told) == _says(event):
            continue
        told = event
        yield event
        if status.status == "closed":
            return


async def watch_logged_statuses(
    log: ReadableLog, steps: AsyncIterator[tuple[RunningStep, ...]]
) -> AsyncGenerator[ConversationStatus, None]:
    """Yield the status after each event and each change of the steps at work, forever."""
    changes: asyncio.Queue[ConversationStatus] = asyncio.Queue()
    state, at_work = await read_state(log), StepsAtWork()

    def tell() -> None:
        changes.put_nowait(with_steps(build_status(log.conversation_id, state), at_work.current))

    async def follow_log() -> None:
        nonlocal state
        async with aclosing(log.tail(state.next_seq - 1)) as entries:
            async for entry in entries:
                state = fold(state, [summarize(entry)])
                at_work.settle(entry.origin)
                tell()

    async def follow_steps() -> None:
        async for current in steps:
            at_work.observe(current)
            tell()

    tell()
    tasks = [asyncio.create_task(follow_log()), asyncio.create_task(follow_steps())]
    try:
        while True:
            getting = asyncio.create_task(changes.get())
            await asyncio.wait({getting, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            if getting.done():
                yield getting.result()
                continue
            getting.cancel()
            for task in tasks:
                if task.done():
                    task.result()  # raises why nothing more comes
            return
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def _says(event: ConversationStateUpdateEvent) -> tuple[object, object]:
    return event.value, event.status_detail
