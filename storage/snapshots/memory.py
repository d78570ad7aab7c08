"""Snapshots that were read or taken lately; they never change, so that they never go stale."""

from collections import OrderedDict

from storage.snapshots.manifest import Snapshot


class Memory:
    """Those used last, as long as they have at most `entries` together: about 0.6 KB each."""

    def __init__(self, entries: int = 100_000) -> None:
        self.entries = entries
        self.size = 0
        self._known: OrderedDict[str, Snapshot] = OrderedDict()

    def get(self, key: str) -> Snapshot | None:
        found = self._known.get(key)
        if found is not None:
            self._known.move_to_end(key)
        return found

    def put(self, snapshot: Snapshot) -> None:
        if snapshot.key in self._known:
            return
        self._known[snapshot.key] = snapshot
        self.size += len(snapshot.tree)
        while self.size > self.entries:
            _, oldest = self._known.popitem(last=False)
            self.size -= len(oldest.tree)
