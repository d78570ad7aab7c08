"""Transcripts kept between steps, so that a step reads and renders only what is new."""

from collections import OrderedDict
from dataclasses import dataclass, field

from agent.ranges import Ranges, between
from agent.spec import CondenserSpec, NoCondenser
from agent.transcript import Transcript
from events.entry import Entry
from storage.cache import weight
from storage.log import EventLog


@dataclass
class _Kept:
    forgotten: Ranges
    transcript: Transcript = field(default_factory=Transcript)
    read: int = 0
    size: int = 0


class Transcripts:
    """The newest transcripts of this worker, at most about `limit` bytes of memory in all,
    but for the newest one."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    async def of(
        self,
        log: EventLog,
        upto: int,
        forgotten: Ranges = (),
        condenser: CondenserSpec | None = None,
    ) -> Transcript:
        """The transcript of the events before slot `upto`, but for those in `forgotten` slots.

        It shows what `condenser` lets it. The next call may extend it. Raises Missing or Damaged
        for the first slot that cannot be read.
        """
        kept = self._kept.pop(log.conversation_id, None)
        if kept is None or kept.read > upto or kept.forgotten != forgotten:
            kept = _Kept(forgotten)
        entries = await live(log, kept.read, upto, forgotten)
        kept.transcript.view.enter(entries)
        kept.transcript.condenser = condenser or NoCondenser()
        kept.read = upto
        kept.size += sum(map(weight, entries))
        self._kept[log.conversation_id] = kept
        self._shrink()
        return kept.transcript

    def forget(self, conversation_id: str) -> None:
        """Make room at once: its next step is far off."""
        self._kept.pop(conversation_id, None)

    def _shrink(self) -> None:
        size = sum(kept.size for kept in self._kept.values())
        while size > self.limit and len(self._kept) > 1:
            size -= self._kept.popitem(last=False)[1].size


async def live(log: EventLog, first: int, upto: int, forgotten: Ranges) -> list[Entry]:
    """The entries from slot `first` on and before `upto` that are not in `forgotten` slots."""
    entries: list[Entry] = []
    for start, end in between(forgotten, upto):
        start = max(start, first)
        if start <= end:
            entries += await log.read(start, end - start + 1)
    return entries
