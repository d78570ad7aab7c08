"""Entries that were read or written lately: they never change, so they never go stale."""

from collections import OrderedDict
from typing import TypeAlias

from events.entry import Entry

Slot: TypeAlias = tuple[str, str, int]
"""A user id, a conversation id and a seq."""

# What the objects of a parsed event take in memory beside the bytes themselves, as measured.
OVERHEAD = 4096
TIMES = 2


class EntryCache:
    """The entries of one store that were used last, in at most about `max_bytes` of memory."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.size = 0
        self._entries: OrderedDict[Slot, Entry] = OrderedDict()

    def get(self, slot: Slot) -> Entry | None:
        found = self._entries.get(slot)
        if found is not None:
            self._entries.move_to_end(slot)
        return found

    def put(self, slot: Slot, entry: Entry) -> None:
        if slot in self._entries:
            self.size -= _weight(self._entries.pop(slot))
        self._entries[slot] = entry
        self.size += _weight(entry)
        while self.size > self.max_bytes:
            _, oldest = self._entries.popitem(last=False)
            self.size -= _weight(oldest)


def _weight(entry: Entry) -> int:
    return OVERHEAD + TIMES * len(entry.body)
