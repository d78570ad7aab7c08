"""The requests to run that are not answered yet, and the clients that wait for the end of a run.

OpenHands' client takes the whole state for the end of a run only once its request to run was
answered. So an end is told after the answer, and again to a client that still asks.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias, TypeVar

T = TypeVar("T")

ConversationKey: TypeAlias = tuple[str, str]
"""The user whose conversation it is, and its id."""

ARRIVAL_SECONDS = 0.25
"""Seconds for an answer to reach the client, which has to act on it."""


class Runs:
    """The requests to run of a process, and the sockets that may have to repeat an end."""

    def __init__(self) -> None:
        self._open: Counter[ConversationKey] = Counter()
        self._answered: dict[ConversationKey, asyncio.Event] = defaultdict(asyncio.Event)
        self._sockets: dict[ConversationKey, set[asyncio.Event]] = defaultdict(set)
        self._counts: Counter[ConversationKey] = Counter()
        """How often the clients have asked to run, while sockets are attached."""

    @contextmanager
    def asking(self, key: ConversationKey) -> Iterator[None]:
        """Hold back the ends of runs while inside, and until the answer has arrived."""
        self._open[key] += 1
        if key in self._sockets:
            self._counts[key] += 1
        try:
            yield
        finally:
            asyncio.get_running_loop().call_later(ARRIVAL_SECONDS, self._close, key)

    async def wait_answered(self, key: ConversationKey) -> None:
        """Wait until no request to run is open."""
        while key in self._open:
            await self._answered[key].wait()

    async def read_between(self, key: ConversationKey, read: Callable[[], Awaitable[T]]) -> T:
        """Return what `read` returns, read again if somebody has asked to run meanwhile.

        What rests before a request to run is no end of that run. A socket has to be attached.
        """
        while True:
            await self.wait_answered(key)
            count = self._counts[key]
            found = await read()
            if self._counts[key] == count:
                return found

    @contextmanager
    def attached(self, key: ConversationKey) -> Iterator[asyncio.Event]:
        """Yield an event that is set when a client asks for a conversation that is at rest."""
        asked = asyncio.Event()
        self._sockets[key].add(asked)
        try:
            yield asked
        finally:
            self._sockets[key].discard(asked)
            if not self._sockets[key]:
                del self._sockets[key], self._counts[key]

    def note_question(self, key: ConversationKey) -> None:
        """Note that a client has asked for a conversation, and was told that it is at rest."""
        for asked in self._sockets.get(key, ()):
            asked.set()

    def _close(self, key: ConversationKey) -> None:
        self._open[key] -= 1
        if self._open[key] == 0:
            del self._open[key]
            self._answered.pop(key, asyncio.Event()).set()
