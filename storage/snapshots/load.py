"""A snapshot from its key."""

import asyncio
import hashlib

from storage.errors import Altered, Unrestorable
from storage.snapshots.manifest import Manifest, Snapshot, parsed, snapshot
from storage.snapshots.memory import Memory
from storage.snapshots.tree import Limits, check
from storage.store import Store

# Files may have grown between being counted and being read.
LIMITS = Limits(total=2 * Limits().total)


async def load(store: Store, key: str, memory: Memory) -> Snapshot:
    """Raises Altered where an object is missing or not what was written, and Unrestorable."""
    if (known := memory.get(key)) is not None:
        return known
    manifest = await _manifest(store, key)
    if manifest.base is None:
        return await _known(key, manifest, None, memory)
    return await _known(key, manifest, await _base(store, manifest.base, key, memory), memory)


async def _base(store: Store, key: str, asker: str, memory: Memory) -> Snapshot:
    if (known := memory.get(key)) is not None and known.base == key:
        return known
    try:
        manifest = await _manifest(store, key)
    except ValueError as error:  # what it names is no key
        raise Unrestorable(asker, "it goes back to what is no snapshot") from error
    if manifest.base is not None:
        raise Unrestorable(asker, "it goes back to one that goes back further")
    return await _known(key, manifest, None, memory)


async def _manifest(store: Store, key: str) -> Manifest:
    body = await fetch(store, key)
    try:
        return await asyncio.to_thread(parsed, body)
    except ValueError as error:
        raise Unrestorable(key, "it is no manifest of a version that is known") from error


async def _known(key: str, manifest: Manifest, base: Snapshot | None, memory: Memory) -> Snapshot:
    try:
        found = await asyncio.to_thread(snapshot, key, manifest, base)
        await asyncio.to_thread(check, found.tree, found.places, LIMITS)
    except ValueError as error:
        raise Unrestorable(key, str(error)) from error
    memory.put(found)
    return found


async def fetch(store: Store, key: str) -> bytes:
    """An object whose name ends with the SHA-256 of its bytes. Raises Altered."""
    body = await store.read(key)
    if body is None or await asyncio.to_thread(_sha, body) != key.rpartition("/")[2]:
        raise Altered(key)
    return body


def _sha(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
