"""Loading a snapshot by its key."""

import asyncio
import hashlib
from collections import OrderedDict

from perdure.storage.errors import Altered, Unrestorable
from perdure.storage.snapshots.manifest import Manifest, Snapshot, build_snapshot, parse_manifest
from perdure.storage.snapshots.tree import SnapshotLimits, check_tree
from perdure.storage.store import Store


class SnapshotCache:
    """The least recently used cache of snapshots with `max_entries` files together, 0.6 KB each."""

    def __init__(self, max_entries: int = 100_000) -> None:
        self.max_entries = max_entries
        self.size = 0
        self._snapshots: OrderedDict[str, Snapshot] = OrderedDict()

    def get(self, key: str) -> Snapshot | None:
        snapshot = self._snapshots.get(key)
        if snapshot is not None:
            self._snapshots.move_to_end(key)
        return snapshot

    def put(self, snapshot: Snapshot) -> None:
        if snapshot.key in self._snapshots:
            return
        self._snapshots[snapshot.key] = snapshot
        self.size += len(snapshot.tree)
        while self.size > self.max_entries:
            _, oldest = self._snapshots.popitem(last=False)
            self.size -= len(oldest.tree)


# Files may have grown between the scan and the read.
RESTORE_LIMITS = SnapshotLimits(total=2 * SnapshotLimits().total)


async def load(store: Store, key: str, memory: SnapshotCache) -> Snapshot:
    """Load a snapshot. Raises Altered if an object is missing or altered, and Unrestorable."""
    if (known := memory.get(key)) is not None:
        return known
    manifest = await _manifest(store, key)
    base = await _base(store, manifest.base, key, memory) if manifest.base is not None else None
    return await _build(key, manifest, base, memory)


async def _base(store: Store, key: str, dependent: str, memory: SnapshotCache) -> Snapshot:
    if (known := memory.get(key)) is not None and known.base == key:
        return known
    try:
        manifest = await _manifest(store, key)
    except ValueError as error:  # the base is not a key
        raise Unrestorable(dependent, "it goes back to what is no snapshot") from error
    if manifest.base is not None:
        raise Unrestorable(dependent, "it goes back to one that goes back further")
    return await _build(key, manifest, None, memory)


async def _manifest(store: Store, key: str) -> Manifest:
    body = await fetch(store, key)
    try:
        return await asyncio.to_thread(parse_manifest, body)
    except ValueError as error:
        raise Unrestorable(key, "it is no manifest of a version that is known") from error


async def _build(
    key: str, manifest: Manifest, base: Snapshot | None, memory: SnapshotCache
) -> Snapshot:
    try:
        loaded = await asyncio.to_thread(build_snapshot, key, manifest, base)
        await asyncio.to_thread(check_tree, loaded.tree, loaded.locations, RESTORE_LIMITS)
    except ValueError as error:
        raise Unrestorable(key, str(error)) from error
    memory.put(loaded)
    return loaded


async def fetch(store: Store, key: str) -> bytes:
    """Read an object whose name ends with the SHA-256 of its bytes. Raises Altered."""
    body = await store.read(key)
    if body is None or await asyncio.to_thread(_sha, body) != key.rpartition("/")[2]:
        raise Altered(key)
    return body


def _sha(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
