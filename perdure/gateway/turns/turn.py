"""A turn that one task reads, and the parts that it has had."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from time import monotonic
from typing import TypeAlias

from perdure.agent.loop.state import State
from perdure.api.frames import ErrorFrame, Frame
from perdure.errors import ClientError, Conflict, NotFound, Unreachable
from perdure.events.tools import ActionEvent
from perdure.gateway.turns.kept_parts import KeptParts
from perdure.gateway.turns.parts import Called, Ended, Part
from perdure.gateway.turns.reader import TurnReader, find_item_id, make_call
from perdure.storage.log.readable import ReadableLog
from perdure.storage.log.state import read_state_at

PAGE_SIZE = 100
"""Entries that are read at once of a turn that is in the log already."""


async def make_reader(log: ReadableLog, state: State) -> TurnReader:
    """Return the reader of the turn that begins after a state, with the calls that wait then."""
    waiting: dict[int, Called] = {}
    for action in state.pending:
        entry = await log.get(action.seq)
        assert isinstance(entry.event, ActionEvent), "what waits is an action"
        waiting[action.seq] = make_call(find_item_id(entry), entry.event)
    return TurnReader(state, waiting)


FollowAfter: TypeAlias = Callable[[int], AsyncGenerator[Frame, None]]
"""Returns the frames of the conversation after a slot."""

ENDS: dict[str, type[ClientError]] = {"not_found": NotFound, "damaged": Conflict}
"""What is raised for the code of the frame that a connection ends with; others: Unreachable."""

CODES_TO_FOLLOW_AGAIN = ("slow_reader",)


class Turn:
    """The turn that begins in slot `seq` of a log.

    Its parts are read by a task of its own from the first listener on. It keeps the newest; those
    of before are read from the log again. `on_alone` is called when the last listener has left.
    """

    def __init__(
        self,
        log: ReadableLog,
        seq: int,
        follow: FollowAfter,
        on_alone: Callable[["Turn"], None] = lambda _: None,
    ) -> None:
        self.parts = KeptParts()
        self.listeners = 0
        self.left_at = monotonic()
        self._log = log
        self._seq = seq
        self._follow = follow
        self._on_alone = on_alone
        self._changed = asyncio.Event()
        self._error: Exception | None = None
        self._task: asyncio.Task[None] | None = None

    async def listen(self, first: int = 0) -> AsyncGenerator[Part, None]:
        """Yield the parts of the turn from the `first` on; the last one is `Ended`.

        Raises NotFound, Conflict, Unreachable and the errors of the store.
        """
        self._enter()
        try:
            number = first
            while True:
                async with aclosing(self._next_parts(number)) as parts:
                    async for part in parts:
                        yield part
                        if isinstance(part, Ended):
                            return
                        number += 1
        finally:
            self._leave()

    @property
    def has_failed(self) -> bool:
        """Tell whether it is not read any more, though it is not over."""
        return self._error is not None

    def stop(self) -> None:
        """Stop reading."""
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """Stop reading, and wait until it has stopped; listeners get Unreachable."""
        self._error = self._error or Unreachable("This gateway ends: ask again.")
        self._wake()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _enter(self) -> None:
        self.listeners += 1
        if self._task is None:
            self._task = asyncio.create_task(self._read())

    def _leave(self) -> None:
        self.listeners -= 1
        if not self.listeners:
            self.left_at = monotonic()
            self._on_alone(self)

    async def _next_parts(self, number: int) -> AsyncGenerator[Part, None]:
        """Yield parts from `number` on: from the log where they are not kept any more."""
        changed = self._changed
        if number < self.parts.first:
            async with aclosing(self._read_again(number)) as again:
                async for part in again:
                    yield part
        elif kept := self.parts.after(number):
            for part in kept:
                yield part
        elif self._error is not None:
            raise self._error
        else:
            await changed.wait()

    async def _read(self) -> None:
        try:
            reader = await self._make_reader()
            async with aclosing(self._read_log(reader)) as pages:
                async for parts in pages:
                    self._add(parts)
            while not reader.is_over:
                await self._follow_frames(reader)
        except Exception as error:
            self._error = error
            self._wake()

    async def _make_reader(self) -> TurnReader:
        """Return a reader of the turn from its start. Raises NotFound where nothing starts."""
        state = await read_state_at(self._log, self._seq)
        if state.next_seq < self._seq:
            raise NotFound(f"The conversation has no slot {self._seq}.")
        return await make_reader(self._log, state)

    async def _follow_frames(self, reader: TurnReader) -> None:
        """Read the turn from frames until it is over, or the connection has to begin anew."""
        async with aclosing(self._follow(reader.state.next_seq - 1)) as frames:
            async for frame in frames:
                if isinstance(frame, ErrorFrame) and frame.id is None:
                    if frame.code in CODES_TO_FOLLOW_AGAIN:
                        return
                    raise ENDS.get(frame.code, Unreachable)(frame.detail)
                self._add(reader.take(frame))
                if reader.is_over:
                    return

    async def _read_log(self, reader: TurnReader) -> AsyncGenerator[list[Part], None]:
        """Yield the parts of the entries that the log has, a page at a time."""
        while not reader.is_over:
            entries = await self._log.read(reader.state.next_seq, PAGE_SIZE)
            yield [part for entry in entries for part in reader.take_entry(entry)]
            if len(entries) < PAGE_SIZE:
                return

    async def _read_again(self, first: int) -> AsyncGenerator[Part, None]:
        """Yield the parts that the log has, from `first` on, until the kept ones follow."""
        reader, number = await self._make_reader(), 0
        async with aclosing(self._read_log(reader)) as pages:
            async for parts in pages:
                for part in parts:
                    if first <= number:
                        yield part
                    number += 1
                if first < number >= self.parts.first:
                    return
        if number <= first:
            raise Unreachable("The turn has grown faster than it was read: ask again.")

    def _add(self, parts: list[Part]) -> None:
        if parts:
            self.parts.add(parts)
            self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
