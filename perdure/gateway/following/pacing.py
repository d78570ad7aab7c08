"""How often a process asks Temporal, however many conversations it follows."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from perdure.gateway.following.settings import FollowingLimits


class Pacing:
    """The turns and intervals that all followers of a process share."""

    def __init__(self, limits: FollowingLimits) -> None:
        self._limits = limits
        self._turns = asyncio.Semaphore(limits.resting_polls)
        self._looking = 0

    @asynccontextmanager
    async def take_turn(self, hurry: asyncio.Event) -> AsyncIterator[None]:
        """Wait for a turn to watch an open workflow at rest, or for the event `hurry`.

        Turns are given in the order in which they are asked for.
        """
        turn = asyncio.ensure_future(self._turns.acquire())
        hurried = asyncio.ensure_future(hurry.wait())
        try:
            await asyncio.wait((turn, hurried), return_when=asyncio.FIRST_COMPLETED)
            yield
        finally:
            hurried.cancel()
            if turn.done() and not turn.cancelled():
                self._turns.release()
            else:
                turn.cancel()

    @contextmanager
    def look_at_text(self) -> Iterator[None]:
        """Count a conversation whose growing text is looked at while inside."""
        self._looking += 1
        try:
            yield
        finally:
            self._looking -= 1

    @property
    def text_interval(self) -> float:
        """The seconds between two looks at one text."""
        return max(self._limits.text_interval, self._looking / self._limits.texts_per_second)
