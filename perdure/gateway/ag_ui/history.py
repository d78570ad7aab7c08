"""The history of a conversation, and the turn that is its newest."""

import json
from dataclasses import dataclass

from perdure.agent.loop.evolve import fold
from perdure.agent.loop.state import State
from perdure.events.entry import Entry
from perdure.events.messages import MessageEvent
from perdure.events.projection import summarize
from perdure.gateway.ag_ui.ids import MessageIds
from perdure.gateway.ag_ui.messages import Message, Messages
from perdure.gateway.turns.reader import TurnReader
from perdure.gateway.turns.starts import is_start, read_all
from perdure.gateway.turns.turn import make_reader
from perdure.storage.log.readable import ReadableLog

MAX_SNAPSHOT_CHARS = 4 * 1024 * 1024
"""Characters of the messages that a run begins with: a client reads events of 10 MiB at most."""


@dataclass(frozen=True)
class History:
    """The messages before a turn, with the one that begins it, and its slot.

    Where there is none, or one that rests and has not ended, these are all messages, and no slot.
    """

    messages: list[Message]
    seq: int | None


class HistoryReader:
    """Reads a history, entry by entry."""

    def __init__(self, log: ReadableLog, blobs: str) -> None:
        self.messages = Messages(MessageIds(log.conversation_id), blobs)
        self.seq: int | None = None
        """The slot of the newest turn, which the messages `before` lead to."""
        self.before: list[Message] = []
        self.turn: TurnReader | None = None
        self.state = State()
        self._log = log

    async def take(self, entry: Entry) -> None:
        is_first = self.turn is None and self.state.spec is not None
        begins = is_first and is_start(self.state, entry)
        if begins:
            self.turn = await make_reader(self._log, self.state)
        if isinstance(entry.event, MessageEvent) and entry.event.source == "user":
            self.messages.ask(entry.event)
        if begins:
            self.seq, self.before = entry.seq, list(self.messages.all)
        if self.turn is None:
            self.state = fold(self.state, [summarize(entry)])
            return
        for part in self.turn.take_entry(entry):
            self.messages.take(part)
        self.state = self.turn.state
        self.turn = None if self.turn.is_over else self.turn


async def read_history(log: ReadableLog, blobs: str, seq: int | None = None) -> History:
    """Read the history before the turn that begins in a slot, or before the newest one.

    `blobs` is the address of the conversation's images.
    """
    reader = HistoryReader(log, blobs)
    async for entry in read_all(log):
        await reader.take(entry)
        if entry.seq == seq:
            begins = reader.seq == seq
            return History(keep_newest(reader.before if begins else reader.messages.all), seq)
    rests = reader.state.at_rest and reader.state.status != "waiting"
    if reader.seq is None or (reader.turn is not None and rests):
        return History(keep_newest(reader.messages.all), None)
    return History(keep_newest(reader.before), reader.seq)


def keep_newest(messages: list[Message], most: int = MAX_SNAPSHOT_CHARS) -> list[Message]:
    """Return the newest messages that are not too long together, from one of the user's on."""
    first, chars = len(messages), 0
    while first and (chars := chars + len(json.dumps(messages[first - 1]))) <= most:
        first -= 1
    while 0 < first < len(messages) and messages[first]["role"] != "user":
        first += 1
    return messages[first:]
