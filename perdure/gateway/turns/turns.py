"""The turns that are followed in a process, each once and for any number of listeners."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from perdure.api.frames import Frame
from perdure.client.client import Client
from perdure.gateway.turns.turn import Turn

KEEP_SECONDS = 60.0
"""Seconds for which a turn is kept without a listener: it can be read anew from the log."""

MAX_ALONE_CHARS = 32 * 1024 * 1024
"""Characters of the parts of all turns that have no listener."""


@dataclass(frozen=True)
class TurnKey:
    """A turn: who reads it, of which conversation, of whom if that is another user, and the slot
    of the message, or of the approval, that began it."""

    user_id: str
    conversation_id: str
    seq: int
    owner: str | None = None


Follow: TypeAlias = Callable[[str, str, str | None, int], AsyncGenerator[Frame, None]]
"""Returns the frames for a user, of a conversation, of its owner, after a slot."""


class Turns:
    """The turns that somebody listens to in this process, each read by one task.

    Any number may listen to one, each from any of its parts, and leave: the turn itself goes on.
    """

    def __init__(
        self,
        client: Client,
        follow: Follow,
        keep_seconds: float = KEEP_SECONDS,
        max_alone_chars: int = MAX_ALONE_CHARS,
    ) -> None:
        self._client = client
        self._follow = follow
        self._keep_seconds = keep_seconds
        self._max_alone_chars = max_alone_chars
        self._turns: dict[TurnKey, Turn] = {}

    def find(self, key: TurnKey) -> Turn:
        """Return a turn, existing or not: its listeners learn that there is none."""
        turn = self._turns.get(key)
        if turn is None or turn.has_failed:
            client = self._client.as_user(key.user_id)
            log = client.conversation(key.conversation_id, key.owner).log
            follow = partial(self._follow, key.user_id, key.conversation_id, key.owner)
            turn = self._turns[key] = Turn(log, key.seq, follow, partial(self._note_alone, key))
        return turn

    async def close(self) -> None:
        """Stop reading; all listeners are told that this process ends."""
        turns = list(self._turns.values())
        self._turns.clear()
        await asyncio.gather(*(turn.close() for turn in turns))

    def _note_alone(self, key: TurnKey, turn: Turn) -> None:
        """Drop a turn without listeners after a while, or others if they are too large."""
        loop = asyncio.get_running_loop()
        loop.call_later(self._keep_seconds, self._drop, key, turn, turn.left_at)
        alone = [(key, each) for key, each in self._turns.items() if not each.listeners]
        chars = sum(each.parts.chars for _, each in alone)
        for name, each in sorted(alone, key=lambda item: item[1].left_at):
            if chars <= self._max_alone_chars:
                break
            chars -= each.parts.chars
            self._drop(name, each, each.left_at)

    def _drop(self, key: TurnKey, turn: Turn, left_at: float) -> None:
        """Drop a turn unless somebody has listened to it since."""
        if turn.listeners or turn.left_at != left_at:
            return
        turn.stop()
        if self._turns.get(key) is turn:
            del self._turns[key]
