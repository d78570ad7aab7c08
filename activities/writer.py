"""Writes what a step has to say one thing after another, each under a name of its own."""

from activities.step import origin
from events.entry import Entry
from events.event import Event
from storage.log import EventLog


class Writer:
    """What it wrote, or found written by an earlier attempt, is in `entries`, without a hole.

    An attempt may have less to say than the one before it, or more: a skill is gone, an action was
    answered meanwhile. So no part is told by its place among the others.
    """

    def __init__(self, log: EventLog, base: int) -> None:
        self.log = log
        self.base = base
        self.entries: list[Entry] = []

    async def write(self, part: str, event: Event) -> None:
        at = self.entries[-1].seq + 1 if self.entries else self.base
        written = await self.log.append([event], base=at, origin=origin(part), shared=True)
        self.entries += written
