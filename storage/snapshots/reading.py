"""Reading the bytes of changed files in pieces, while others may write them."""

import errno
import os
import stat
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TypeAlias

from perdure.storage.errors import TooLarge
from perdure.storage.snapshots.folders import FOLDER_FLAGS, FolderWalker, open_path
from perdure.storage.snapshots.mark import FileStamps
from perdure.storage.snapshots.packs import MAX_PIECE_BYTES, Pack, Packer
from perdure.storage.snapshots.tree import (
    MAX_DEPTH,
    MODE_BITS,
    SETID_BITS,
    File,
    Folder,
    Hardlink,
    Skipped,
    SnapshotLimits,
    Symlink,
    Tree,
    TreeEntry,
)

GONE_ERRNOS = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.ESTALE}
"""Errors of a path that is no longer what it was a moment ago."""

UNREADABLE_ERRNOS = {errno.EACCES, errno.EPERM, errno.EIO}

SPECIAL_FILES = {
    stat.S_IFSOCK: "a socket",
    stat.S_IFIFO: "a pipe",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


@dataclass(frozen=True, slots=True)
class ScannedEntry:
    """A path and its status; `entry` is None for a file, which is still to be read.

    The `stat` of a skipped path may be that of the folder it is in.
    """

    path: str
    stat: os.stat_result
    entry: TreeEntry | None = None


def scan(
    root: int, limits: SnapshotLimits, ignored: frozenset[str] = frozenset()
) -> list[ScannedEntry]:
    """List all of the folder open at `root`, itself first, in a constant order. Raises TooLarge.

    Of what bears an `ignored` name, nothing is listed.
    """
    status = os.fstat(root)
    scanned = [ScannedEntry("", status, _make_folder(status))]
    total = 0
    for item in _scan_contents(root, "", 1, status.st_dev, ignored):
        scanned.append(item)
        if item.entry is None:
            total += item.stat.st_size
        _check_limits(item, len(scanned), total, limits)
    return scanned


def _check_limits(item: ScannedEntry, entries: int, total: int, limits: SnapshotLimits) -> None:
    advice = "delete what is not needed, or make it outside of the workspace."
    if item.entry is None and item.stat.st_size > limits.file:
        raise TooLarge(
            f"{item.path!r} in the workspace has {item.stat.st_size:,} bytes, and a snapshot takes "
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


def _skip(error: OSError) -> Skipped | None:
    """Build the entry of a path that cannot be read; None if it is gone. Raises other errors."""
    if error.errno in UNREADABLE_ERRNOS:
        return Skipped(f"it cannot be read: {error.strerror}")
    if error.errno not in GONE_ERRNOS:
        raise error
    return None


def _scan_contents(
    folder: int, start: str, depth: int, device: int, ignored: frozenset[str]
) -> Iterator[ScannedEntry]:
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if entry.name not in ignored)
    for name in names:
        path = start + name
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                yield from _scan_folder(folder, name, path, depth, device, ignored)
            else:
                yield ScannedEntry(path, status, _make_entry(folder, name, status))
        except OSError as error:
            if skipped := _skip(error):
                yield ScannedEntry(path, os.fstat(folder), skipped)


def _scan_folder(
    parent: int, name: str, path: str, depth: int, device: int, ignored: frozenset[str]
) -> Iterator[ScannedEntry]:
    if depth > MAX_DEPTH:
        yield ScannedEntry(path, os.fstat(parent), Skipped("it is too deep"))
        return
    with open_path(name, FOLDER_FLAGS, parent) as descriptor:
        status = os.fstat(descriptor)
        if status.st_dev != device:
            yield ScannedEntry(path, status, Skipped("it is on another file system"))
            return
        yield ScannedEntry(path, status, _make_folder(status))
        yield from _scan_contents(descriptor, f"{path}/", depth + 1, device, ignored)


def _make_folder(status: os.stat_result) -> Folder:
    return Folder(status.st_mode & MODE_BITS, status.st_mtime_ns)


def _make_entry(folder: int, name: str, status: os.stat_result) -> TreeEntry | None:
    if stat.S_ISREG(status.st_mode):
        return None
    if stat.S_ISLNK(status.st_mode):
        return Symlink(os.readlink(name, dir_fd=folder), status.st_mtime_ns)
    return Skipped(f"it is {SPECIAL_FILES.get(stat.S_IFMT(status.st_mode), 'no file')}")


SECRET_OVERLAP_BYTES = 64 * 1024
"""Bytes that two adjacent reads of a file share: no secret is longer."""

FindSecrets: TypeAlias = Callable[[bytes], set[str]]
"""A function that returns the names of the secrets whose values are in some bytes."""

READ_ATTEMPTS = 3
"""Attempts at reading a file that changes meanwhile; the last one is kept as it is."""

# Opening a pipe that replaced a file would block.
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


class _SecretFound(Exception):
    """A file holds a secret; the text is why it is left out."""


@dataclass
class TreeReader:
    """Turns a scan into a `tree`, and `stamps` each file that it reads.

    `old` and `old_stamps` are those of the last snapshot. A file with a ctime from `now` on could
    change without getting another one, so it is read again next time. A file that holds a secret is
    left out, and named.
    """

    root: int
    scanned: list[ScannedEntry]
    old: Tree
    old_stamps: FileStamps
    packer: Packer
    now: int
    secrets: FindSecrets
    tree: Tree = field(default_factory=dict)
    stamps: FileStamps = field(default_factory=dict)
    _holders: dict[tuple[int, int], str] = field(default_factory=dict)

    def read_packs(self) -> Generator[Pack, None, None]:
        """Read the changed files; yield the packs as they fill."""
        with closing(FolderWalker(self.root)) as walker:
            for scanned in self.scanned:
                holder = self._holders.get((scanned.stat.st_dev, scanned.stat.st_ino))
                if scanned.entry is not None:
                    self.tree[scanned.path] = scanned.entry
                elif holder is not None:
                    self.tree[scanned.path] = Hardlink(holder)
                elif (known := self._unchanged(scanned)) is not None:
                    self._record(scanned.path, known, scanned.stat)
                else:
                    yield from self._read(walker, scanned.path)

    def _unchanged(self, scanned: ScannedEntry) -> File | None:
        old, status = self.old.get(scanned.path), scanned.stat
        stamp = (status.st_ino, status.st_ctime_ns)
        if not isinstance(old, File) or self.old_stamps.get(scanned.path) != stamp:
            return None
        same = File(_mode(status), status.st_mtime_ns, status.st_size, old.pieces)
        return old if old == same else None

    def _read(self, walker: FolderWalker, path: str) -> Iterator[Pack]:
        try:
            for _ in range(READ_ATTEMPTS):
                if (yield from self._read_once(walker, path)):
                    return
        except OSError as error:
            self.tree.pop(path, None)
            if skipped := _skip(error):
                self.tree[path] = skipped
        except _SecretFound as secret:
            self.tree[path] = Skipped(str(secret))

    def _read_once(self, walker: FolderWalker, path: str) -> Generator[Pack, None, bool]:
        """Read a file; return whether it stood still. A later attempt replaces the bytes.

        Reads at most the size that the file had when it was opened: it may grow for ever.
        """
        folder, name = walker.open_parent(path)
        with open_path(name, FILE_FLAGS, folder) as descriptor:
            before = os.fstat(descriptor)
            if not stat.S_ISREG(before.st_mode):
                raise FileNotFoundError(errno.ENOENT, "it is no file any more", path)
            if before.st_size > MAX_PIECE_BYTES:  # check all of it before any of it is uploaded
                for start in range(0, before.st_size, MAX_PIECE_BYTES):
                    length = MAX_PIECE_BYTES + SECRET_OVERLAP_BYTES
                    self._check_secrets(os.pread(descriptor, length, start))
            pieces: list[str] = []
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                while piece := file.read(min(MAX_PIECE_BYTES, before.st_size - file.tell())):
                    self._check_secrets(piece)  # it may have changed since the check
                    pieces.append(self.packer.add(piece))
                    yield from self.packer.take_packs()
                size = file.tell()
            after = os.fstat(descriptor)
        torn = size != after.st_size or _stat_fields(before) != _stat_fields(after)
        self._record(path, File(_mode(after), after.st_mtime_ns, size, tuple(pieces), torn), after)
        return not torn

    def _check_secrets(self, data: bytes) -> None:
        if names := self.secrets(data):
            raise _SecretFound(f"it holds the value of {', '.join(sorted(names))}")

    def _record(self, path: str, file: File, status: os.stat_result) -> None:
        self.tree[path] = file
        if status.st_nlink > 1:
            self._holders[status.st_dev, status.st_ino] = path
        if status.st_ctime_ns < self.now and not file.torn:
            self.stamps[path] = (status.st_ino, status.st_ctime_ns)


def _mode(file: os.stat_result) -> int:
    return file.st_mode & MODE_BITS & ~SETID_BITS


_stat_fields = attrgetter("st_size", "st_mtime_ns", "st_ctime_ns", "st_mode")
