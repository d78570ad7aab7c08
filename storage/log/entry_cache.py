"""A memory cache of log entries, which never change and so never go stale."""

from typing import TypeAlias

from perdure.events.entry import Entry
from perdure.storage.cache import Cache
from perdure.storage.log.lineage import Lineage
from perdure.storage.log.segments import Tail

# Memory of a parsed event's objects beside the bytes themselves, as measured.
ENTRY_OVERHEAD_BYTES = 4096
BODY_FACTOR = 2

MAX_LINEAGES = 10_000
MAX_TAIL_HASHES = 100_000  # about 9 MB

Slot: TypeAlias = tuple[str, str, int]
"""A user id, a conversation id and a seq."""


def memory_size(entry: Entry) -> int:
    """Estimate the bytes of memory that a cached entry takes."""
    return ENTRY_OVERHEAD_BYTES + BODY_FACTOR * len(entry.body)


class EntryCache(Cache[Slot, Entry]):
    """The cache of one store's entries, of about `max_size` bytes at most.

    `lineages` has those of conversations that have begun: from then on they never change. `tails`
    has those of workflow runs, of which others may have written longer ones since: a segment ends
    at the same slot whoever writes it, unless a run ends there.
    """

    def __init__(self, max_size: int) -> None:
        super().__init__(max_size, memory_size)
        self.lineages: Cache[tuple[str, str], Lineage] = Cache(MAX_LINEAGES)
        self.tails: Cache[tuple[str, str, str], Tail] = Cache(
            MAX_TAIL_HASHES, lambda tail: len(tail.shas) + 10
        )

    def evict_log(self, user_id: str, conversation_id: str, before: int) -> None:
        """Drop a conversation's entries before slot `before`: nobody needs them soon."""
        self.lineages.evict((user_id, conversation_id))
        for seq in range(before):
            self.evict((user_id, conversation_id, seq))
