"""A memory cache of log entries, which never change and so never go stale."""

from collections import OrderedDict
from typing import TypeAlias

from perdure.events.entry import Entry
from perdure.storage.log.lineage import Lineage

CacheKey: TypeAlias = tuple[str, str, int]
"""A user id, a conversation id and a seq."""

# Memory of a parsed event's objects beside the bytes themselves, as measured.
ENTRY_OVERHEAD_BYTES = 4096
BODY_FACTOR = 2

MAX_LINEAGES = 10_000
"""Conversations whose lineage is cached."""


class EntryCache:
    """The least recently used cache of one store's entries, of about `max_bytes` at most."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.size = 0
        self._entries: OrderedDict[CacheKey, Entry] = OrderedDict()
        self._lineages: OrderedDict[tuple[str, str], Lineage] = OrderedDict()

    def lineage(self, user_id: str, conversation_id: str) -> Lineage | None:
        return self._lineages.get((user_id, conversation_id))

    def put_lineage(self, lineage: Lineage) -> None:
        """Cache the lineage of a conversation that has begun: from then on it never changes."""
        self._lineages[lineage[0].user_id, lineage[0].conversation_id] = lineage
        if len(self._lineages) > MAX_LINEAGES:
            self._lineages.popitem(last=False)

    def get(self, slot: CacheKey) -> Entry | None:
        entry = self._entries.get(slot)
        if entry is not None:
            self._entries.move_to_end(slot)
        return entry

    def put(self, slot: CacheKey, entry: Entry) -> None:
        if slot in self._entries:
            self.size -= memory_size(self._entries.pop(slot))
        self._entries[slot] = entry
        self.size += memory_size(entry)
        while self.size > self.max_bytes:
            _, oldest = self._entries.popitem(last=False)
            self.size -= memory_size(oldest)

    def evict(self, user_id: str, conversation_id: str, before: int) -> None:
        """Drop a conversation's entries before slot `before`: nobody needs them soon."""
        self._lineages.pop((user_id, conversation_id), None)
        for seq in range(before):
            entry = self._entries.pop((user_id, conversation_id, seq), None)
            self.size -= memory_size(entry) if entry is not None else 0


def memory_size(entry: Entry) -> int:
    """Estimate the bytes of memory that a cached entry takes."""
    return ENTRY_OVERHEAD_BYTES + BODY_FACTOR * len(entry.body)
