"""A log as the updates of a session."""

from collections.abc import AsyncGenerator
from typing import Any

from perdure.acp.content import show_message
from perdure.acp.projection import Projection, Update
from perdure.agent.loop.start import build_status
from perdure.agent.loop.state import State
from perdure.events.entry import Entry
from perdure.events.messages import MessageEvent
from perdure.gateway.turns.parts import Asked
from perdure.gateway.turns.reader import TurnReader
from perdure.gateway.turns.turn import make_reader
from perdure.storage.log.readable import ReadableLog

PAGE_SIZE = 100
"""Entries that are read at once."""


class Replay:
    """Reads a log from its beginning, turn by turn.

    At its end, `reader` is that of a turn under way, if there is one, and `question` has the
    calls that wait for a person.
    """

    def __init__(self, log: ReadableLog, projection: Projection) -> None:
        self.state = State()
        self.reader: TurnReader | None = None
        self._log = log
        self._projection = projection

    async def updates(self) -> AsyncGenerator[Update, None]:
        """Yield the updates of all that the log has. Raises the errors of the store."""
        while entries := await self._log.read(self.state.next_seq, PAGE_SIZE):
            for entry in entries:
                for update in await self._take(entry):
                    yield update
        if self.state.next_seq == 0:  # started, and not taken up by a worker yet
            self.reader = TurnReader(self.state)

    @property
    def question(self) -> Asked | None:
        """The calls that wait for a person; None if none does."""
        calls = [call for call in build_status("", self.state).pending if call.asks]
        waits = calls and self.state.status == "waiting_for_confirmation"
        return Asked(tuple(calls)) if waits else None

    async def _take(self, entry: Entry) -> list[Update]:
        said: list[Update] = []
        if isinstance(entry.event, MessageEvent) and entry.event.source == "user":
            blocks = await show_message(self._log, entry.event)
            said = [_make_user_chunk(block) for block in blocks]
        reader = self.reader or await make_reader(self._log, self.state)
        parts = reader.take_entry(entry)
        self.state = reader.state
        self.reader = None if reader.is_over else reader
        return [*said, *(each for part in parts for each in self._projection.take(part))]


def _make_user_chunk(block: dict[str, Any]) -> Update:
    return {"sessionUpdate": "user_message_chunk", "content": block}
