"""Restoring a snapshot into a folder, completely or not at all."""

import errno
import hashlib
import os
from collections import defaultdict
from contextlib import aclosing, closing
from functools import partial
from pathlib import Path
from uuid import uuid4

from perdure.storage.errors import StoreRefused, Unrestorable
from perdure.storage.snapshots.folders import (
    FolderWalker,
    make_writable,
    open_folder,
    remove_tree,
    run_ahead,
    to_thread_shielded,
)
from perdure.storage.snapshots.manifest import Snapshot, SnapshotCache, fetch, load
from perdure.storage.snapshots.mark import FileStamps, Mark, file_clock, folder_lock, sidecar
from perdure.storage.snapshots.packs import MAX_PACK_BYTES, inflate
from perdure.storage.snapshots.tree import (
    SETID_BITS,
    File,
    Folder,
    Hardlink,
    Location,
    Symlink,
    Tree,
    sort_paths,
)
from perdure.storage.store import Store

WRITE_FLAGS = os.O_WRONLY | os.O_NOFOLLOW

PieceTarget = tuple[str, int, str, Location]
"""A path, an offset in that file, and the piece that belongs there: SHA-256 and location."""


async def restore(store: Store, key: str, folder: Path, cache: SnapshotCache | None = None) -> None:
    """Make `folder` equal the snapshot at `key`; anything else in it is removed.

    The files are made beside it and take its place at once. If that is interrupted, the folder is
    as it was, or `last_snapshot_key(folder)` is None. The files belong to this process. Raises
    Altered, Unrestorable, StoreError, and OSError where the folder cannot be made.
    """
    snapshot = await load(store, key, cache or SnapshotCache())
    folder = await to_thread_shielded(folder.resolve)
    async with folder_lock(folder):
        scratch = sidecar(folder, "aside")
        await to_thread_shielded(remove_tree, scratch, ignore_errors=True)
        try:
            new = scratch / f"new-{uuid4().hex}"
            await to_thread_shielded(new.mkdir, 0o700, parents=True)
            stamps = await _write_tree(store, snapshot, folder, new)
            inode = await to_thread_shielded(_replace, folder, new, snapshot)
            await to_thread_shielded(Mark(key, inode, stamps).write, folder)
        finally:
            await to_thread_shielded(remove_tree, scratch, ignore_errors=True)


async def _write_tree(store: Store, snapshot: Snapshot, folder: Path, new: Path) -> FileStamps:
    with open_folder(new) as root:
        await to_thread_shielded(_make_names, root, snapshot.tree)
        targets = _targets_by_pack(snapshot)
        async with aclosing(run_ahead(partial(fetch, store), iter(targets))) as packs:
            for pieces in targets.values():
                body = await anext(packs)
                await to_thread_shielded(_write_pieces, root, snapshot.key, body, pieces)
        return await to_thread_shielded(_finish, root, folder, snapshot.tree)


def _make_names(root: int, tree: Tree) -> None:
    """Create folders, symlinks and empty files, private to this user for now."""
    with closing(FolderWalker(root)) as walker:
        for path in sort_paths(tree)[1:]:  # the first is the root
            folder, name = walker.open_parent(path)
            match tree[path]:
                case Folder():
                    os.mkdir(name, 0o700, dir_fd=folder)
                case File():
                    flags = WRITE_FLAGS | os.O_CREAT | os.O_EXCL
                    os.close(os.open(name, flags, 0o600, dir_fd=folder))
                case Symlink(target):
                    os.symlink(target, name, dir_fd=folder)


def _targets_by_pack(snapshot: Snapshot) -> dict[str, list[PieceTarget]]:
    targets: dict[str, list[PieceTarget]] = defaultdict(list)
    for path in sort_paths(snapshot.tree):
        entry = snapshot.tree[path]
        offset = 0
        for sha in entry.pieces if isinstance(entry, File) else ():
            location = snapshot.locations[sha]
            targets[location.pack].append((path, offset, sha, location))
            offset += location.length
    return targets


def _write_pieces(root: int, key: str, body: bytes, targets: list[PieceTarget]) -> None:
    """Write the pieces in a pack of the snapshot at `key`. Raises Unrestorable."""
    try:
        raw = inflate(body, MAX_PACK_BYTES)
    except ValueError as error:
        raise Unrestorable(key, f"a pack of it is none: {error}") from error
    with closing(FolderWalker(root)) as walker:
        for path, offset, sha, location in targets:
            data = location.cut(raw)
            if hashlib.sha256(data).hexdigest() != sha:
                raise Unrestorable(key, f"{path!r} is not in the pack that it names")
            folder, name = walker.open_parent(path)
            with os.fdopen(os.open(name, WRITE_FLAGS, dir_fd=folder), "wb") as file:
                file.seek(offset)
                file.write(data)


def _finish(root: int, folder: Path, tree: Tree) -> FileStamps:
    """Set hard links, modes and times, but of the folder itself; stamp the files."""
    _link(root, tree)
    stamps: FileStamps = {}
    with closing(FolderWalker(root)) as walker:
        # From the inside out: a change in a folder sets its time, and its mode may forbid one.
        for path in reversed(sort_paths(tree)):
            entry = tree[path]
            if path and isinstance(entry, Folder | File | Symlink):
                parent, name = walker.open_parent(path)
                if not isinstance(entry, Symlink):
                    forbidden = SETID_BITS if isinstance(entry, File) else 0
                    os.chmod(name, entry.mode & ~forbidden, dir_fd=parent)
                times = (entry.mtime, entry.mtime)
                os.utime(name, ns=times, dir_fd=parent, follow_symlinks=False)
                if isinstance(entry, File):
                    status = os.stat(name, dir_fd=parent, follow_symlinks=False)
                    stamps[path] = (status.st_ino, status.st_ctime_ns)
    now = file_clock(folder)
    return {path: stamp for path, stamp in stamps.items() if stamp[1] < now}


def _link(root: int, tree: Tree) -> None:
    with closing(FolderWalker(root)) as sources, closing(FolderWalker(root)) as links:
        for path, entry in tree.items():
            if isinstance(entry, Hardlink):
                source, old = sources.open_parent(entry.target)
                folder, new = links.open_parent(path)
                os.link(old, new, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)


def _replace(folder: Path, new: Path, snapshot: Snapshot) -> int:
    """Put the new folder in the place of the old one; return its inode."""
    sidecar(folder, "json").unlink(missing_ok=True)
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
    top = snapshot.tree[""]
    assert isinstance(top, Folder), "every tree begins with one"
    with open_folder(folder) as root:
        os.fchmod(root, top.mode)
        os.utime(root, ns=(top.mtime, top.mtime))
        return os.fstat(root).st_ino
