"""A cache of transcripts, so that a step reads and renders only new events."""

from collections import OrderedDict
from dataclasses import dataclass, field

from perdure.agent.spec import CondenserSpec, NoCondenser
from perdure.agent.view.seq_ranges import SeqRanges, remaining_ranges
from perdure.agent.view.transcript import Transcript
from perdure.events.entry import Entry
from perdure.storage.log.entry_cache import memory_size
from perdure.storage.log.event_log import EventLog


@dataclass
class _CachedTranscript:
    forgotten: SeqRanges
    transcript: Transcript = field(default_factory=Transcript)
    read: int = 0
    size: int = 0


class TranscriptCache:
    """The most recently used transcripts, of about `limit` bytes together; one is always kept."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._cached: OrderedDict[str, _CachedTranscript] = OrderedDict()
        self._size = 0

    async def load(
        self,
        log: EventLog,
        upto: int,
        forgotten: SeqRanges = (),
        condenser: CondenserSpec | None = None,
        max_message_chars: int | None = None,
    ) -> Transcript:
        """Return the transcript of the events before slot `upto` that are not `forgotten`.

        `condenser` may mask a part of it, and results are cut to `max_message_chars`. The next call
        may extend it in place. Raises Missing or Damaged for the first slot that cannot be read.
        """
        cached = self.evict(log)
        if cached is None or cached.read > upto or cached.forgotten != forgotten:
            cached = _CachedTranscript(forgotten)
        entries = await read_unforgotten(log, cached.read, upto, forgotten)
        cached.transcript.view.add_entries(entries)
        cached.transcript.condenser = condenser or NoCondenser()
        cached.transcript.limit_results(max_message_chars)
        cached.read = upto
        cached.size += sum(map(memory_size, entries))
        self._cached[log.prefix] = cached
        self._size += cached.size
        while self._size > self.limit and len(self._cached) > 1:
            self._pop(next(iter(self._cached)))
        return cached.transcript

    def evict(self, log: EventLog) -> _CachedTranscript | None:
        """Evict a conversation whose next step is far off, and return what was cached of it."""
        return self._pop(log.prefix)

    def _pop(self, prefix: str) -> _CachedTranscript | None:
        cached = self._cached.pop(prefix, None)
        self._size -= cached.size if cached else 0
        return cached


async def read_unforgotten(
    log: EventLog, first: int, upto: int, forgotten: SeqRanges
) -> list[Entry]:
    """Read the entries of slots `first` to `upto` (excluded) that are not `forgotten`."""
    entries: list[Entry] = []
    for start, end in remaining_ranges(forgotten, upto):
        start = max(start, first)
        if start <= end:
            entries += await log.read(start, end - start + 1)
    return entries
