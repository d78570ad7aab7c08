"""What is in a folder, while others may be changing it. Nothing outside is looked at."""

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from storage.errors import TooLarge
from storage.snapshots.folders import OPEN
from storage.snapshots.tree import DEEPEST, MODE, Entry, Folder, Limits, Skipped, Symlink

GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.ESTALE}
"""It is no longer what it was a moment ago."""

CLOSED = {errno.EACCES, errno.EPERM, errno.EIO}

KINDS = {
    stat.S_IFSOCK: "a socket",
    stat.S_IFIFO: "a pipe",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


@dataclass(frozen=True, slots=True)
class Found:
    """`entry` is None where it is a file, which is still to be read.

    The `stat` of what is skipped may be that of the folder it is in.
    """

    path: str
    stat: os.stat_result
    entry: Entry | None = None


def scan(root: int, limits: Limits) -> list[Found]:
    """Everything in the folder open at `root`, itself first, always in the same order.

    Raises TooLarge.
    """
    at = os.fstat(root)
    found = [Found("", at, Folder(at.st_mode & MODE, at.st_mtime_ns))]
    total = 0
    for one in _inside(root, "", 1, at.st_dev):
        found.append(one)
        if one.entry is None:
            total += one.stat.st_size
        _check(one, len(found), total, limits)
    return found


def _check(one: Found, entries: int, total: int, limits: Limits) -> None:
    advice = "delete what is not needed, or make it outside of the workspace."
    if one.entry is None and one.stat.st_size > limits.file:
        raise TooLarge(
            f"{one.path!r} in the workspace has {one.stat.st_size:,} bytes, and a snapshot takes "
            f"files of up to {limits.file:,}: {advice}"
        )
    if total > limits.total:
        raise TooLarge(
            f"The files of the workspace have more than {limits.total:,} bytes, which is the most "
            f"that a snapshot takes: {advice}"
        )
    if entries > limits.entries:
        raise TooLarge(
            f"The workspace has more than {limits.entries:,} files and folders, which is the most "
            f"that a snapshot takes: {advice}"
        )


def _inside(folder: int, start: str, depth: int, device: int) -> Iterator[Found]:
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries)
    for name in names:
        path = start + name
        try:
            yield from _one(folder, name, path, depth, device)
        except OSError as error:
            if error.errno in CLOSED:
                why = Skipped(f"it cannot be read: {error.strerror}")
                yield Found(path, os.fstat(folder), why)
            elif error.errno not in GONE:
                raise


def _one(folder: int, name: str, path: str, depth: int, device: int) -> Iterator[Found]:
    at = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISDIR(at.st_mode):
        yield from _folder(folder, name, Found(path, at), depth, device)
    else:
        yield Found(path, at, _entry(folder, name, at))


def _folder(above: int, name: str, found: Found, depth: int, device: int) -> Iterator[Found]:
    if depth > DEEPEST:
        yield Found(found.path, found.stat, Skipped("it is too deep"))
        return
    descriptor = os.open(name, OPEN, dir_fd=above)
    try:
        at = os.fstat(descriptor)
        if at.st_dev != device:
            yield Found(found.path, at, Skipped("it is on another file system"))
            return
        yield Found(found.path, at, Folder(at.st_mode & MODE, at.st_mtime_ns))
        yield from _inside(descriptor, f"{found.path}/", depth + 1, device)
    finally:
        os.close(descriptor)


def _entry(folder: int, name: str, at: os.stat_result) -> Entry | None:
    if stat.S_ISREG(at.st_mode):
        return None
    if stat.S_ISLNK(at.st_mode):
        return Symlink(os.readlink(name, dir_fd=folder), at.st_mtime_ns)
    return Skipped(f"it is {KINDS.get(stat.S_IFMT(at.st_mode), 'no file')}")
