"""Running steps and statuses of a conversation, as a gateway tells those who follow its log."""

from collections.abc import AsyncGenerator, AsyncIterator

from perdure.agent.loop.start import ConversationStatus
from perdure.client.http.log import HttpLog
from perdure.client.running_step import RunningStep


async def watch_running_steps(log: HttpLog) -> AsyncIterator[tuple[RunningStep, ...]]:
    """Yield the running steps that have said anything, whenever their text grows, forever."""
    previous: tuple[RunningStep, ...] = ()
    async with log.follow(await log.end() - 1) as following:
        while True:
            current = tuple(following.steps.values())
            if current != previous:
                yield current
                previous = current
            elif following.failure is not None:
                raise following.failure
            else:
                await following.wait()


async def watch_statuses(log: HttpLog) -> AsyncGenerator[ConversationStatus, None]:
    """Yield the status, now and whenever it may have changed, forever."""
    async with log.follow(await log.end() - 1) as following:
        count = max(0, following.status_count - 1)
        while True:
            for status in following.statuses_after(count):
                count += 1
                yield status
            if count == following.status_count:
                if following.failure is not None:
                    raise following.failure
                await following.wait()
