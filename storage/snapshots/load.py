"""Loading a snapshot by its key."""

import asyncio
import hashlib
from dataclasses import dataclass

from perdure.storage.cache import Cache
from perdure.storage.errors import Altered, Unrestorable
from perdure.storage.snapshots.manifest import Manifest, decode_entries, parse_manifest, unquote
from perdure.storage.snapshots.tree import Locations, SnapshotLimits, Tree, check_tree
from perdure.storage.store import Store

# Files may have grown between the scan and the read.
RESTORE_LIMITS = SnapshotLimits(total=2 * SnapshotLimits().total)


@dataclass(frozen=True)
class Snapshot:
    """A loaded snapshot: its tree, and the locations of at least its pieces.

    `base` is the key of the manifest that a later delta refers to: its own, or that of its base.
    """

    key: str
    tree: Tree
    locations: Locations
    base: str
    delta_entries: int


class SnapshotCache(Cache[str, Snapshot]):
    """The cache of snapshots, by key, with `max_size` files together, 0.6 KB each."""

    def __init__(self, max_size: int = 100_000) -> None:
        super().__init__(max_size, lambda snapshot: len(snapshot.tree))


async def load(store: Store, key: str, cache: SnapshotCache) -> Snapshot:
    """Load a snapshot. Raises Altered if an object is missing or altered, and Unrestorable."""
    if (known := cache.get(key)) is not None:
        return known
    manifest = await _load_manifest(store, key)
    base = await _load_base(store, manifest.base, key, cache) if manifest.base is not None else None
    return await _check(key, manifest, base, cache)


async def _load_base(store: Store, key: str, dependent: str, cache: SnapshotCache) -> Snapshot:
    if (known := cache.get(key)) is not None and known.base == key:
        return known
    try:
        manifest = await _load_manifest(store, key)
    except ValueError as error:  # the base is not a key
        raise Unrestorable(dependent, "it goes back to what is no snapshot") from error
    if manifest.base is not None:
        raise Unrestorable(dependent, "it goes back to one that goes back further")
    return await _check(key, manifest, None, cache)


async def _load_manifest(store: Store, key: str) -> Manifest:
    body = await fetch(store, key)
    try:
        return await asyncio.to_thread(parse_manifest, body)
    except ValueError as error:
        raise Unrestorable(key, "it is no manifest of a version that is known") from error


async def _check(
    key: str, manifest: Manifest, base: Snapshot | None, cache: SnapshotCache
) -> Snapshot:
    try:
        snapshot = await asyncio.to_thread(_build, key, manifest, base)
    except ValueError as error:
        raise Unrestorable(key, str(error)) from error
    cache.put(key, snapshot)
    return snapshot


def _build(key: str, manifest: Manifest, base: Snapshot | None) -> Snapshot:
    """Build the snapshot from its manifest. Raises ValueError if it must not be restored."""
    tree, locations = decode_entries(manifest)
    if base is not None:
        gone = set(map(unquote, manifest.gone))
        tree = {path: entry for path, entry in base.tree.items() if path not in gone} | tree
        locations = {**base.locations, **locations}
    check_tree(tree, locations, RESTORE_LIMITS)
    return Snapshot(key, tree, locations, base.key if base else key, manifest.spent)


async def fetch(store: Store, key: str) -> bytes:
    """Read an object whose name ends with the SHA-256 of its bytes. Raises Altered."""
    body = await store.read(key)
    if body is not None:
        digest = await asyncio.to_thread(hashlib.sha256, body)
        if digest.hexdigest() == key.rpartition("/")[2]:
            return body
    raise Altered(key)
