"""Making the files of a snapshot in an empty folder, whatever their names are."""

import os
from collections.abc import Iterable, Iterator

from storage.snapshots.folders import folders
from storage.snapshots.mark import Seen
from storage.snapshots.tree import (
    SETID,
    Entry,
    File,
    Folder,
    Hardlink,
    Place,
    Places,
    Symlink,
    Tree,
    in_order,
)

WRITE = os.O_WRONLY | os.O_NOFOLLOW

Owner = tuple[int, int]
"""A uid and a gid."""

Part = tuple[str, int, str, Place]
"""A path, an offset in that file, and what belongs there: its SHA-256 and its place."""


def make_names(root: int, tree: Tree) -> None:
    """Folders, links, and files without their bytes; private for now."""
    with folders(root) as at:
        for path in in_order(tree):
            if path:
                _make(*at.of(path), tree[path])


def _make(folder: int, name: str, entry: Entry) -> None:
    match entry:
        case Folder():
            os.mkdir(name, 0o700, dir_fd=folder)
        case File():
            flags = WRITE | os.O_CREAT | os.O_EXCL
            os.close(os.open(name, flags, 0o600, dir_fd=folder))
        case Symlink():
            os.symlink(entry.target, name, dir_fd=folder)


def parts_by_pack(tree: Tree, places: Places) -> dict[str, list[Part]]:
    parts: dict[str, list[Part]] = {}
    for part in _parts(tree, places):
        parts.setdefault(part[3].pack, []).append(part)
    return parts


def _parts(tree: Tree, places: Places) -> Iterator[Part]:
    for path in in_order(tree):
        entry = tree[path]
        offset = 0
        for sha in entry.pieces if isinstance(entry, File) else ():
            yield path, offset, sha, places[sha]
            offset += places[sha].length


def write_parts(root: int, parts: Iterable[tuple[str, int, bytes]]) -> None:
    with folders(root) as at:
        for path, offset, data in parts:
            folder, name = at.of(path)
            descriptor = os.open(name, WRITE, dir_fd=folder)
            try:
                _write(descriptor, data, offset)
            finally:
                os.close(descriptor)


def _write(descriptor: int, data: bytes, offset: int) -> None:
    left = memoryview(data)
    while left:
        written = os.pwrite(descriptor, left, offset)
        left, offset = left[written:], offset + written


def finish(root: int, tree: Tree, owner: Owner | None) -> Seen:
    """Hard links, owners, modes and times; the folder itself is left to `finish_root`."""
    _link(root, tree)
    seen: Seen = {}
    with folders(root) as at:
        # From the inside out: what is done in a folder changes its time, and its mode may bar it.
        for path in reversed(in_order(tree)):
            if path and not isinstance(entry := tree[path], Hardlink):
                folder, name = at.of(path)
                _dress(folder, name, entry, owner)
                if isinstance(entry, File):
                    now = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    seen[path] = (now.st_ino, now.st_ctime_ns)
    return seen


def finish_root(root: int, tree: Tree, owner: Owner | None) -> None:
    entry = tree[""]
    assert isinstance(entry, Folder)
    if owner:
        os.fchown(root, *owner)
    os.fchmod(root, entry.mode)
    os.utime(root, ns=(entry.mtime, entry.mtime))


def _link(root: int, tree: Tree) -> None:
    with folders(root) as there, folders(root) as here:
        for path, entry in tree.items():
            if isinstance(entry, Hardlink):
                source, old = there.of(entry.to)
                folder, new = here.of(path)
                os.link(old, new, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)


def _dress(folder: int, name: str, entry: Entry, owner: Owner | None) -> None:
    if not isinstance(entry, Folder | File | Symlink):
        return
    if owner:
        os.chown(name, *owner, dir_fd=folder, follow_symlinks=False)
    if not isinstance(entry, Symlink):
        mode = entry.mode & ~SETID if isinstance(entry, File) else entry.mode
        os.chmod(name, mode, dir_fd=folder)
    os.utime(name, ns=(entry.mtime, entry.mtime), dir_fd=folder, follow_symlinks=False)
