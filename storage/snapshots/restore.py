"""Restoring a snapshot into a folder, completely or not at all."""

import asyncio
import errno
import hashlib
import os
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing, closing
from pathlib import Path
from uuid import uuid4

from perdure.storage.errors import StoreRefused, Unrestorable
from perdure.storage.snapshots.folders import (
    FolderWalker,
    make_writable,
    open_folder,
    remove_tree,
    to_thread_shielded,
)
from perdure.storage.snapshots.load import SnapshotCache, fetch, load
from perdure.storage.snapshots.manifest import Snapshot
from perdure.storage.snapshots.mark import (
    FileStamps,
    Mark,
    file_system_time,
    folder_lock,
    remove_mark,
    scratch_folder,
    write_mark,
)
from perdure.storage.snapshots.packs import MAX_PACK_BYTES, inflate
from perdure.storage.snapshots.tree import (
    SETID_BITS,
    File,
    Folder,
    Hardlink,
    PieceLocation,
    PieceLocations,
    Symlink,
    Tree,
    TreeEntry,
    sort_paths,
)
from perdure.storage.store import Store

WRITE_FLAGS = os.O_WRONLY | os.O_NOFOLLOW

Owner = tuple[int, int]
"""A uid and a gid."""

PieceTarget = tuple[str, int, str, PieceLocation]
"""A path, an offset in that file, and the piece that belongs there: SHA-256 and location."""


def make_names(root: int, tree: Tree) -> None:
    """Create folders, symlinks and empty files, private to this user for now."""
    with closing(FolderWalker(root)) as walker:
        for path in sort_paths(tree):
            if path:
                _make(*walker.open_parent(path), tree[path])


def _make(folder: int, name: str, entry: TreeEntry) -> None:
    match entry:
        case Folder():
            os.mkdir(name, 0o700, dir_fd=folder)
        case File():
            flags = WRITE_FLAGS | os.O_CREAT | os.O_EXCL
            os.close(os.open(name, flags, 0o600, dir_fd=folder))
        case Symlink():
            os.symlink(entry.target, name, dir_fd=folder)


def targets_by_pack(tree: Tree, locations: PieceLocations) -> dict[str, list[PieceTarget]]:
    targets: dict[str, list[PieceTarget]] = {}
    for target in _targets(tree, locations):
        targets.setdefault(target[3].pack, []).append(target)
    return targets


def _targets(tree: Tree, locations: PieceLocations) -> Iterator[PieceTarget]:
    for path in sort_paths(tree):
        entry = tree[path]
        offset = 0
        for sha in entry.pieces if isinstance(entry, File) else ():
            yield path, offset, sha, locations[sha]
            offset += locations[sha].length


def write_pieces(root: int, pieces: Iterable[tuple[str, int, bytes]]) -> None:
    with closing(FolderWalker(root)) as walker:
        for path, offset, data in pieces:
            folder, name = walker.open_parent(path)
            descriptor = os.open(name, WRITE_FLAGS, dir_fd=folder)
            try:
                _write_all(descriptor, data, offset)
            finally:
                os.close(descriptor)


def _write_all(descriptor: int, data: bytes, offset: int) -> None:
    remaining = memoryview(data)
    while remaining:
        written = os.pwrite(descriptor, remaining, offset)
        remaining, offset = remaining[written:], offset + written


def finish_entries(root: int, tree: Tree, owner: Owner | None) -> FileStamps:
    """Set hard links, owners, modes and times; `finish_root` does the folder itself."""
    _link(root, tree)
    stamps: FileStamps = {}
    with closing(FolderWalker(root)) as walker:
        # From the inside out: a change in a folder sets its time, and its mode may forbid one.
        for path in reversed(sort_paths(tree)):
            if path and not isinstance(entry := tree[path], Hardlink):
                folder, name = walker.open_parent(path)
                _set_metadata(folder, name, entry, owner)
                if isinstance(entry, File):
                    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    stamps[path] = (status.st_ino, status.st_ctime_ns)
    return stamps


def finish_root(root: int, tree: Tree, owner: Owner | None) -> None:
    entry = tree[""]
    assert isinstance(entry, Folder)
    if owner:
        os.fchown(root, *owner)
    os.fchmod(root, entry.mode)
    os.utime(root, ns=(entry.mtime, entry.mtime))


def _link(root: int, tree: Tree) -> None:
    with closing(FolderWalker(root)) as sources, closing(FolderWalker(root)) as links:
        for path, entry in tree.items():
            if isinstance(entry, Hardlink):
                source, old = sources.open_parent(entry.target)
                folder, new = links.open_parent(path)
                os.link(old, new, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)


def _set_metadata(folder: int, name: str, entry: TreeEntry, owner: Owner | None) -> None:
    if not isinstance(entry, Folder | File | Symlink):
        return
    if owner:
        os.chown(name, *owner, dir_fd=folder, follow_symlinks=False)
    if not isinstance(entry, Symlink):
        mode = entry.mode & ~SETID_BITS if isinstance(entry, File) else entry.mode
        os.chmod(name, mode, dir_fd=folder)
    os.utime(name, ns=(entry.mtime, entry.mtime), dir_fd=folder, follow_symlinks=False)


PARALLEL_PACKS = 4
"""Packs that are downloaded at the same time; each has up to 8 MiB."""


async def restore(
    store: Store,
    key: str,
    folder: Path,
    memory: SnapshotCache | None = None,
    owner: Owner | None = None,
) -> None:
    """Make `folder` equal the snapshot at `key`; anything else in it is removed.

    The files are made beside it and take its place at once. If that is interrupted, the folder is
    as it was, or `last_snapshot_key(folder)` is None. The files belong to `owner`, or to this
    process. Raises Altered, Unrestorable, StoreError, and OSError where the folder cannot be made.
    """
    snapshot = await load(store, key, memory or SnapshotCache())
    folder = await to_thread_shielded(folder.resolve)
    async with folder_lock(folder):
        await to_thread_shielded(remove_tree, scratch_folder(folder), ignore_errors=True)
        try:
            new = await to_thread_shielded(_make_scratch, scratch_folder(folder))
            stamps = await _write_tree(store, snapshot, folder, new, owner)
            inode = await to_thread_shielded(_replace, folder, new, snapshot, owner)
            await to_thread_shielded(write_mark, folder, Mark(key, inode, stamps))
        finally:
            await to_thread_shielded(remove_tree, scratch_folder(folder), ignore_errors=True)


def _make_scratch(folder: Path) -> Path:
    new = folder / f"new-{uuid4().hex}"
    new.mkdir(0o700, parents=True)
    return new


async def _write_tree(
    store: Store, snapshot: Snapshot, folder: Path, new: Path, owner: Owner | None
) -> FileStamps:
    with open_folder(new) as root:
        await to_thread_shielded(make_names, root, snapshot.tree)
        targets = targets_by_pack(snapshot.tree, snapshot.locations)
        async with aclosing(_fetch_packs(store, targets)) as packs:
            async for pack, body in packs:
                pieces = _unpack_pieces(snapshot.key, body, targets[pack])
                await to_thread_shielded(write_pieces, root, pieces)
        return await to_thread_shielded(_finish, root, folder, snapshot, owner)


async def _fetch_packs(
    store: Store, packs: Iterable[str]
) -> AsyncGenerator[tuple[str, bytes], None]:
    """Yield the packs in turn, downloading the next ones while one is in use."""
    downloads: deque[tuple[str, asyncio.Task[bytes]]] = deque()
    try:
        for pack in packs:
            downloads.append((pack, asyncio.create_task(fetch(store, pack))))
            if len(downloads) >= PARALLEL_PACKS:
                first, task = downloads.popleft()
                yield first, await task
        while downloads:
            first, task = downloads.popleft()
            yield first, await task
    finally:
        for _, task in downloads:
            task.cancel()
        await asyncio.gather(*(task for _, task in downloads), return_exceptions=True)


def _unpack_pieces(
    key: str, body: bytes, targets: Iterable[PieceTarget]
) -> Iterator[tuple[str, int, bytes]]:
    try:
        raw = inflate(body, MAX_PACK_BYTES)
    except ValueError as error:
        raise Unrestorable(key, f"a pack of it is none: {error}") from error
    for path, offset, sha, location in targets:
        data = raw[location.offset : location.offset + location.length]
        if hashlib.sha256(data).hexdigest() != sha:
            raise Unrestorable(key, f"{path!r} is not in the pack that it names")
        yield path, offset, data


def _finish(root: int, folder: Path, snapshot: Snapshot, owner: Owner | None) -> FileStamps:
    stamps = finish_entries(root, snapshot.tree, owner)
    now = file_system_time(folder)
    return {path: stamp for path, stamp in stamps.items() if stamp[1] < now}


def _replace(folder: Path, new: Path, snapshot: Snapshot, owner: Owner | None) -> int:
    remove_mark(folder)
    try:
        if folder.exists():
            make_writable(folder)
            folder.rename(new.with_name(f"old-{uuid4().hex}"))
        new.rename(folder)
    except OSError as error:
        if error.errno in (errno.EBUSY, errno.EXDEV):
            raise StoreRefused(
                f"{folder} cannot be replaced by a restored workspace: something is mounted "
                "there; let the workspace be a folder inside of it."
            ) from error
        raise
    with open_folder(folder) as root:
        finish_root(root, snapshot.tree, owner)
        return os.fstat(root).st_ino
