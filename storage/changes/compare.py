"""Reading what differs between two snapshots, without restoring either."""

import asyncio
import os
from collections.abc import Iterator

from perdure.storage.changes.record import (
    GENERATED_FOLDERS,
    MAX_RECORD_BYTES,
    MAX_TEXT_BYTES,
    ChangedFile,
    FileVersion,
    read_version,
)
from perdure.storage.snapshots.manifest import Snapshot, SnapshotCache, fetch, load
from perdure.storage.snapshots.packs import MAX_PACK_BYTES, inflate
from perdure.storage.snapshots.tree import File, Hardlink, Skipped, Symlink, Tree, TreeEntry
from perdure.storage.store import Store

_EMPTY = Snapshot("", {}, {}, "", 0)


async def compare_snapshots(store: Store, before: str | None, after: str) -> list[ChangedFile]:
    """List the files that differ between two snapshots; None is an empty folder.

    Folders, times and modes are not compared, nor what programs generate. Raises Altered,
    Unrestorable and StoreError.
    """
    cache = SnapshotCache()
    old = await load(store, before, cache) if before else _EMPTY
    new = await load(store, after, cache)
    texts = _Texts(store)
    return [
        ChangedFile(
            path=os.fsencode(path).decode(errors="backslashreplace"),
            before=await texts.read(old, path),
            after=await texts.read(new, path),
        )
        for path in _differing_paths(old.tree, new.tree)
    ]


def _differing_paths(old: Tree, new: Tree) -> Iterator[str]:
    for path in sorted(old.keys() | new.keys()):
        if GENERATED_FOLDERS.isdisjoint(path.split("/")):
            before, after = _content(old, path), _content(new, path)
            if before != after:
                yield path


def _content(tree: Tree, path: str) -> object:
    """Return what a path holds, to be compared; None for a folder, or where nothing is."""
    match entry := _resolve(tree, path):
        case File():
            return entry.pieces
        case Symlink():
            return entry.target
        case Skipped():
            return entry
    return None


def _resolve(tree: Tree, path: str) -> TreeEntry | None:
    entry = tree.get(path)
    return tree.get(entry.target) if isinstance(entry, Hardlink) else entry


class _Texts:
    """Reads the texts of files, up to the size of a record, and each pack once in a row."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._size = 0
        self._pack: tuple[str, bytes] = ("", b"")

    async def read(self, snapshot: Snapshot, path: str) -> FileVersion | None:
        entry = _resolve(snapshot.tree, path)
        if isinstance(entry, Symlink):
            return FileVersion(reason=f"a symlink to {entry.target}")
        if isinstance(entry, Skipped):
            return FileVersion(reason=entry.reason)
        if not isinstance(entry, File):
            return None
        if entry.size > MAX_TEXT_BYTES:
            return FileVersion(reason="too large to compare")
        self._size += entry.size
        if self._size > MAX_RECORD_BYTES:
            return FileVersion(reason="too many changes")
        return read_version(b"".join([await self._piece(snapshot, sha) for sha in entry.pieces]))

    async def _piece(self, snapshot: Snapshot, sha: str) -> bytes:
        location = snapshot.locations[sha]
        if self._pack[0] != location.pack:
            body = await fetch(self.store, location.pack)
            self._pack = location.pack, await asyncio.to_thread(inflate, body, MAX_PACK_BYTES)
        return location.cut(self._pack[1])
