"""The shells of the conversations that are at work here."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tools.shell.session import Session

LIMIT = 64
"""Shells that are kept; beyond it, the one that was not used for the longest time is closed."""

IDLE = 3600.0
"""Seconds without a call after which a shell is closed."""


@dataclass
class Seat:
    """A conversation's place, with its session where it has one. One call at a time has it."""

    session: Session | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0
    clock: asyncio.TimerHandle | None = None

    def stop_clock(self) -> None:
        if self.clock is not None:
            self.clock.cancel()


class Sessions:
    """At most one session a conversation, and none that nobody needs any more."""

    def __init__(self, limit: int = LIMIT, idle: float = IDLE) -> None:
        self._limit = limit
        self._idle = idle
        self._seats: dict[str, Seat] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def seat(self, conversation_id: str) -> AsyncIterator[Seat]:
        """The conversation's place, for this call alone."""
        seat = self._seats.pop(conversation_id, None) or Seat()
        self._seats[conversation_id] = seat  # the last is the one that was used last
        seat.users += 1
        seat.stop_clock()
        self._make_room()
        try:
            async with seat.lock:
                yield seat
        finally:
            seat.users -= 1
            if not seat.users:
                loop = asyncio.get_running_loop()
                seat.clock = loop.call_later(self._idle, self._retire, conversation_id)

    async def end(self, conversation_id: str) -> None:
        """End the shell of a conversation, and wait until all its processes are gone."""
        self._retire(conversation_id)
        await asyncio.gather(*self._closing)

    async def close(self) -> None:
        """End every shell, and wait until all their processes are gone."""
        for conversation_id in list(self._seats):
            self._retire(conversation_id)
        await asyncio.gather(*self._closing)

    def _make_room(self) -> None:
        unused = [name for name, seat in self._seats.items() if not seat.users]
        for name in unused[: max(0, len(self._seats) - self._limit)]:
            self._retire(name)

    def _retire(self, conversation_id: str) -> None:
        seat = self._seats.pop(conversation_id, None)
        if seat is None:
            return
        seat.stop_clock()
        if seat.session is not None:
            closing = asyncio.create_task(seat.session.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
