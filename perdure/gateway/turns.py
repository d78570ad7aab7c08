"""Turns that are followed in a process, for any number of listeners."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TypeAlias

from perdure.api.frames import Frame
from perdure.gateway.turn_parts import Ended, Part, TurnReader

KEEP_SECONDS = 60.0
"""Seconds for which the parts of a turn that has ended are kept for those who come late."""


class Turn:
    """A turn that is followed, and the parts that it has had."""

    def __init__(self, seq: int) -> None:
        self.parts: list[Part] = []
        self._reader = TurnReader(seq)
        self._changed = asyncio.Event()
        self._error: Exception | None = None

    async def listen(self) -> AsyncIterator[Part]:
        """Yield all parts of the turn from its start; the last one is `Ended`.

        Raises the error that following ended with.
        """
        taken = 0
        while True:
            changed = self._changed
            for part in self.parts[taken:]:
                yield part
                if isinstance(part, Ended):
                    return
                taken += 1
            if taken == len(self.parts):
                if self._error is not None:
                    raise self._error
                await changed.wait()

    async def follow(self, frames: AsyncIterator[Frame]) -> None:
        """Read the parts from the frames behind the message, until the turn is over."""
        try:
            async for frame in frames:
                if parts := self._reader.take(frame):
                    self.parts += parts
                    self._wake()
                if self._reader.is_over:
                    break
        except Exception as error:
            self._error = error
            self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


TurnKey: TypeAlias = tuple[str, str, str | None, int]
"""The user who asks, the id of the conversation, its owner if that is another user, and the slot of
the message that began the turn."""

Follow: TypeAlias = Callable[[str, str, str | None, int], AsyncIterator[Frame]]
"""Returns the frames for a user, of a conversation, of its owner, after a slot."""


class Turns:
    """The turns that are followed in this process, each once and by a task of its own.

    Any number may listen to one, each from the start, and leave: the turn goes on being followed.
    """

    def __init__(self, follow: Follow) -> None:
        self._follow = follow
        self._turns: dict[TurnKey, tuple[Turn, asyncio.Task[None]]] = {}

    def find(self, user_id: str, conversation_id: str, seq: int, owner: str | None = None) -> Turn:
        """Return the turn that the message in slot `seq` began."""
        key = (user_id, conversation_id, owner, seq)
        if key not in self._turns:
            turn = Turn(seq)
            frames = self._follow(user_id, conversation_id, owner, seq)
            task = asyncio.create_task(turn.follow(frames))
            task.add_done_callback(partial(self._drop_later, key))
            self._turns[key] = (turn, task)
        return self._turns[key][0]

    async def close(self) -> None:
        """Stop following."""
        tasks = [task for _, task in self._turns.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._turns.clear()

    def _drop_later(self, key: TurnKey, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            loop = asyncio.get_running_loop()
            loop.call_later(KEEP_SECONDS, lambda: self._turns.pop(key, None))
