"""A turn while it is at work, from the log and from what its steps say meanwhile.

It works for a conversation of Temporal's and for one behind a gateway: it needs their handle alone.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TypeAlias

from perdure.client.protocol import ConversationHandle
from perdure.client.running_step import RunningStep
from perdure.events.entry import Entry
from perdure.gateway.following.step_texts import StepTexts
from perdure.gateway.turns.parts import Part
from perdure.gateway.turns.reader import TurnReader

CHECK_SECONDS = 2.0
"""Seconds between two looks whether the workflow of a turn that is at rest has failed."""

MAX_WAITING = 256
"""Entries and looks at the steps that may wait for a slow reader."""

PAGE_SIZE = 100

Sight: TypeAlias = Entry | Sequence[RunningStep]


async def listen(
    conversation: ConversationHandle, reader: TurnReader
) -> AsyncGenerator[Part, None]:
    """Yield the parts of a turn from where its reader is, until it is over.

    Raises Conflict if its workflow fails, Unreachable after an outage, and errors of the store.
    """
    listener = _Listener(conversation, reader)
    async with aclosing(watch(conversation, reader.state.next_seq - 1)) as sights:
        async for sight in sights:
            for part in await listener.take(sight):
                yield part
            if reader.is_over:
                return


class _Listener:
    """Takes what is seen of a turn, in whatever order it is seen."""

    def __init__(self, conversation: ConversationHandle, reader: TurnReader) -> None:
        self._conversation = conversation
        self._reader = reader
        self._texts = StepTexts()

    async def take(self, sight: Sight) -> list[Part]:
        if isinstance(sight, Entry):
            return self._take_entry(sight)
        parts = [part for delta in self._texts.observe(sight) for part in self._reader.take(delta)]
        if self._texts.list_gone(sight):
            parts += await self._settle(sight)
        return parts

    def _take_entry(self, entry: Entry) -> list[Part]:
        if entry.seq < self._reader.state.next_seq:
            return []
        parts = [part for delta in self._texts.settle(entry) for part in self._reader.take(delta)]
        return [*parts, *self._reader.take_entry(entry)]

    async def _settle(self, steps: Sequence[RunningStep]) -> list[Part]:
        """Drop the texts of steps that have ended, unless the log has the event of the step."""
        parts: list[Part] = []
        while entries := await self._conversation.log.read(self._reader.state.next_seq, PAGE_SIZE):
            parts += [part for entry in entries for part in self._take_entry(entry)]
            if self._reader.is_over:
                return parts
        aborted = self._texts.abort(self._texts.list_gone(steps))
        return [*parts, *(part for frame in aborted for part in self._reader.take(frame))]


async def watch(conversation: ConversationHandle, after: int) -> AsyncGenerator[Sight, None]:
    """Yield the entries after a slot, and the running steps whenever they change, forever."""
    sights: asyncio.Queue[Sight] = asyncio.Queue(MAX_WAITING)

    async def read_log() -> None:
        async for entry in conversation.log.tail(after):
            await sights.put(entry)

    async def watch_steps() -> None:
        async for steps in conversation.watch_running_steps():
            await sights.put(steps)

    async def watch_workflow() -> None:
        while True:
            await conversation.wait_for_turn(after=after)
            await asyncio.sleep(CHECK_SECONDS)

    tasks = [asyncio.create_task(work()) for work in (read_log, watch_steps, watch_workflow)]
    try:
        while True:
            get = asyncio.create_task(sights.get())
            await asyncio.wait([get, *tasks], return_when=asyncio.FIRST_COMPLETED)
            if get.done():
                yield get.result()
                continue
            get.cancel()
            for task in tasks:
                if task.done():
                    task.result()  # raises: none of them ends by itself
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
