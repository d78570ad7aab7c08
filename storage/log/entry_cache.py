"""A memory cache of log entries, which never change and so never go stale."""

from typing import TypeAlias

from perdure.events.entry import Entry
from perdure.storage.cache import Cache
from perdure.storage.log.lineage import Lineage

# Memory of a parsed event's objects beside the bytes themselves, as measured.
ENTRY_OVERHEAD_BYTES = 4096
BODY_FACTOR = 2

MAX_LINEAGES = 10_000

Slot: TypeAlias = tuple[str, str, int]
"""A user id, a conversation id and a seq."""


def memory_size(entry: Entry) -> int:
    """Estimate the bytes of memory that a cached entry takes."""
    return ENTRY_OVERHEAD_BYTES + BODY_FACTOR * len(entry.body)


class EntryCache(Cache[Slot, Entry]):
    """The cache of one store's entries, of about `max_size` bytes at most.

    `lineages` has those of conversations that have begun: from then on they never change.
    """

    def __init__(self, max_size: int) -> None:
        super().__init__(max_size, memory_size)
        self.lineages: Cache[tuple[str, str], Lineage] = Cache(MAX_LINEAGES)

    def evict_log(self, user_id: str, conversation_id: str, before: int) -> None:
        """Drop a conversation's entries before slot `before`: nobody needs them soon."""
        self.lineages.evict((user_id, conversation_id))
        for seq in range(before):
            self.evict((user_id, conversation_id, seq))
