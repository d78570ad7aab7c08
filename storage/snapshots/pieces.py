"""Reading one file of a snapshot, without restoring the others."""

import asyncio
import hashlib
from collections.abc import AsyncIterator

from perdure.storage.errors import Unrestorable
from perdure.storage.snapshots.manifest import Snapshot, fetch
from perdure.storage.snapshots.packs import MAX_PACK_BYTES, inflate
from perdure.storage.snapshots.tree import File, Hardlink, Tree
from perdure.storage.store import Store


def find_file(tree: Tree, path: str) -> File | None:
    """Return the file at a path; None where there is none."""
    entry = tree.get(path)
    if isinstance(entry, Hardlink):
        entry = tree.get(entry.target)
    return entry if isinstance(entry, File) else None


async def read_pieces(store: Store, snapshot: Snapshot, file: File) -> AsyncIterator[bytes]:
    """Yield the bytes of a file of the snapshot. Raises Altered, Unrestorable, StoreError."""
    pack, raw = "", b""
    for sha in file.pieces:
        location = snapshot.locations[sha]
        if location.pack != pack:
            pack = location.pack
            raw = await _unpack(store, snapshot.key, pack)
        data = location.cut(raw)
        if hashlib.sha256(data).hexdigest() != sha:
            raise Unrestorable(snapshot.key, "a file is not in the pack that it names")
        yield data


async def _unpack(store: Store, key: str, pack: str) -> bytes:
    body = await fetch(store, pack)
    try:
        return await asyncio.to_thread(inflate, body, MAX_PACK_BYTES)
    except ValueError as error:
        raise Unrestorable(key, f"a pack of it is none: {error}") from error
