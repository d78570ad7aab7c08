"""What was read or written lately and never changes, so that it never goes stale."""

from collections import OrderedDict
from typing import TypeAlias

from events.entry import Entry
from storage.lineage import Lineage

Slot: TypeAlias = tuple[str, str, int]
"""A user id, a conversation id and a seq."""

# What the objects of a parsed event take in memory beside the bytes themselves, as measured.
OVERHEAD = 4096
TIMES = 2

MANY = 10_000
"""Conversations of which it is kept in mind whose slots they go back to."""


class EntryCache:
    """The entries of one store that were used last, in at most about `max_bytes` of memory."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.size = 0
        self._entries: OrderedDict[Slot, Entry] = OrderedDict()
        self._lineages: OrderedDict[tuple[str, str], Lineage] = OrderedDict()

    def lineage(self, user_id: str, conversation_id: str) -> Lineage | None:
        return self._lineages.get((user_id, conversation_id))

    def put_lineage(self, lineage: Lineage) -> None:
        """Keep it for good: only of a conversation that has begun, whose lineage never changes."""
        self._lineages[lineage[0].user_id, lineage[0].conversation_id] = lineage
        if len(self._lineages) > MANY:
            self._lineages.popitem(last=False)

    def get(self, slot: Slot) -> Entry | None:
        found = self._entries.get(slot)
        if found is not None:
            self._entries.move_to_end(slot)
        return found

    def put(self, slot: Slot, entry: Entry) -> None:
        if slot in self._entries:
            self.size -= weight(self._entries.pop(slot))
        self._entries[slot] = entry
        self.size += weight(entry)
        while self.size > self.max_bytes:
            _, oldest = self._entries.popitem(last=False)
            self.size -= weight(oldest)

    def forget(self, user_id: str, conversation_id: str, before: int) -> None:
        """Make room at once: the slots of a conversation before this one are not needed soon."""
        self._lineages.pop((user_id, conversation_id), None)
        for seq in range(before):
            found = self._entries.pop((user_id, conversation_id, seq), None)
            self.size -= weight(found) if found is not None else 0


def weight(entry: Entry) -> int:
    """About how many bytes of memory it takes."""
    return OVERHEAD + TIMES * len(entry.body)
