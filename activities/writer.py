"""Writes what a step has to say: by itself, or one thing after another under names of their own."""

from collections.abc import Sequence

from activities.step import is_retry, origin
from events.entry import Entry
from events.event import Event
from events.usage import Usage
from storage.errors import Fenced, Superseded
from storage.log import EventLog

MOST = 64
"""Entries of others that a step comes back with: those behind them come with the next."""


async def write_alone(
    log: EventLog, events: Sequence[Event], base: int, part: str = "", usage: Usage | None = None
) -> list[Entry]:
    """Append what follows from the log before `base`, and from nothing else.

    Where another step of the run came first, one that had been given up and was late, what stands
    there is the answer instead: the workflow takes it in, and decides again. Raises Fenced where
    another run has come in between.
    """
    mine = origin(part)
    try:
        return await log.append(events, base=base, origin=mine, usage=usage)
    except Superseded:
        found = await log.read(base, MOST)
        for entry in found:
            if entry.origin.run != mine.run:
                raise Fenced(f"slot {entry.seq}", entry.origin.run) from None
        return found


class Writer:
    """What it wrote, or found written by an earlier attempt, is in `all`, without a hole.

    An attempt may have less to say than the one before it, or more: a skill is gone, an action was
    answered meanwhile. So no part is told by its place among the others.
    """

    def __init__(self, log: EventLog, base: int) -> None:
        self.log = log
        self.base = base
        self._entries: list[Entry] = []

    async def write(self, part: str, event: Event) -> None:
        at = self._entries[-1].seq + 1 if self._entries else self.base
        written = await self.log.append([event], base=at, origin=origin(part), shared=True)
        self._entries += written

    async def all(self) -> list[Entry]:
        """What this step has written, with what an earlier attempt had to say beyond that.

        Who is not told of it would go on before it, and do once more what is done after it.
        """
        mine = origin()
        while is_retry():
            end = self._entries[-1].seq + 1 if self._entries else self.base
            held = await self.log.find(end)
            if held is None or held.origin.run != mine.run:
                break
            if held.origin.activity.partition(" ")[0] != mine.activity:
                break
            self._entries.append(held)
        return self._entries
