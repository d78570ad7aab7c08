"""Transcripts kept between steps, so that a step reads and renders only what is new."""

from collections import OrderedDict
from dataclasses import dataclass, field

from agent.transcript import Transcript
from storage.log import EventLog


@dataclass
class _Kept:
    transcript: Transcript = field(default_factory=Transcript)
    read: int = 0
    size: int = 0


class Transcripts:
    """The newest transcripts of this worker, at most `limit` bytes of stored events in all."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    async def of(self, log: EventLog, upto: int) -> Transcript:
        """The transcript of the events before slot `upto`. The next call may extend it."""
        kept = self._kept.pop(log.conversation_id, None)
        if kept is None or kept.read > upto:
            kept = _Kept()
        entries = await log.read(kept.read, upto - kept.read)
        kept.transcript.extend(entry.event for entry in entries)
        kept.read = upto
        kept.size += sum(len(entry.body) for entry in entries)
        self._kept[log.conversation_id] = kept
        self._shrink()
        return kept.transcript

    def _shrink(self) -> None:
        size = sum(kept.size for kept in self._kept.values())
        while size > self.limit and len(self._kept) > 1:
            size -= self._kept.popitem(last=False)[1].size
