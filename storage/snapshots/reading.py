"""The bytes of the files that are not known yet, read in pieces while others may write them."""

import errno
import os
import stat
from collections.abc import Callable, Generator, Iterator
from typing import TypeAlias

from storage.snapshots.folders import Folders, folders
from storage.snapshots.mark import Seen
from storage.snapshots.packs import PIECE, Pack, Packer
from storage.snapshots.scan import CLOSED, GONE, Found
from storage.snapshots.tree import MODE, SETID, File, Hardlink, Skipped, Tree

OVERLAP = 64 * 1024
"""Bytes of two looks at a file that both see: no secret is longer."""

Secrets: TypeAlias = Callable[[bytes], set[str]]
"""The names of the secrets whose values are in some bytes."""

TRIES = 3
"""How often a file is read that changes meanwhile; the last time it is taken as it comes."""

# A pipe that took the place of a file would keep us waiting.
OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


class _Secret(Exception):
    """Why a file is left out."""


class Reading:
    """A scan that becomes a `tree`, with what is seen of each file while it is read.

    `old` and `seen` are what is known from last time. What has a ctime from `now` on could change
    without getting another one, so that it is read again next time. A file with a secret in it is
    left out, and named.
    """

    def __init__(
        self,
        root: int,
        found: list[Found],
        old: Tree,
        seen: Seen,
        packer: Packer,
        now: int,
        secrets: Secrets | None = None,
    ) -> None:
        self.tree: Tree = {}
        self.seen: Seen = {}
        self._holders: dict[tuple[int, int], str] = {}
        self._root = root
        self._found = found
        self._old = old
        self._old_seen = seen
        self._packer = packer
        self._now = now
        self._secrets = secrets

    def packs(self) -> Generator[Pack, None, None]:
        """Reads what is new; the packs are to be taken away as they fill."""
        with folders(self._root) as at:
            for one in self._found:
                holder = self._holders.get((one.stat.st_dev, one.stat.st_ino))
                if one.entry is not None:
                    self.tree[one.path] = one.entry
                elif holder is not None:
                    self.tree[one.path] = Hardlink(holder)
                elif (known := self._known(one)) is not None:
                    self._keep(one.path, known, one.stat)
                else:
                    yield from self._read(at, one.path)

    def _known(self, one: Found) -> File | None:
        old, now = self._old.get(one.path), one.stat
        if (
            isinstance(old, File)
            and self._old_seen.get(one.path) == (now.st_ino, now.st_ctime_ns)
            and (old.size, old.mtime, old.mode) == (now.st_size, now.st_mtime_ns, mode_of(now))
        ):
            return old
        return None

    def _read(self, at: Folders, path: str) -> Iterator[Pack]:
        try:
            for _ in range(TRIES):
                if (yield from self._try(at, path)):
                    return
        except OSError as error:
            if error.errno in CLOSED:
                self.tree[path] = Skipped(f"it cannot be read: {error.strerror}")
            elif error.errno in GONE:
                self.tree.pop(path, None)
            else:
                raise
        except _Secret as found:
            self.tree[path] = Skipped(str(found))

    def _try(self, at: Folders, path: str) -> Generator[Pack, None, bool]:
        """Whether it stood still. Else what was read stays, unless there is a next time."""
        folder, name = at.of(path)
        descriptor = os.open(name, OPEN, dir_fd=folder)
        try:
            before = os.fstat(descriptor)
            if not stat.S_ISREG(before.st_mode):
                raise FileNotFoundError(errno.ENOENT, "it is no file any more", path)
            self._look(descriptor, before.st_size)
            pieces, size = yield from self._pieces(descriptor, before.st_size)
            after = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        still = size == after.st_size and _state(before) == _state(after)
        file = File(mode_of(after), after.st_mtime_ns, size, tuple(pieces), torn=not still)
        self._keep(path, file, after)
        return still

    def _look(self, descriptor: int, size: int) -> None:
        """Raises _Secret: before anything of the file is on its way."""
        if self._secrets is not None and size > PIECE:
            for start in range(0, size, PIECE):
                self._refuse(os.pread(descriptor, PIECE + OVERLAP, start))

    def _refuse(self, data: bytes) -> None:
        if self._secrets is not None and (names := self._secrets(data)):
            raise _Secret(f"it holds the value of {', '.join(sorted(names))}")

    def _pieces(self, descriptor: int, size: int) -> Generator[Pack, None, tuple[list[str], int]]:
        """No more than it had when it was opened: it may grow for ever."""
        pieces: list[str] = []
        done = 0
        while done < size and (piece := _content(descriptor, min(PIECE, size - done))):
            self._refuse(piece)  # it may have become another since it was looked at
            pieces.append(self._packer.add(piece))
            done += len(piece)
            yield from self._packer.taken()
        return pieces, done

    def _keep(self, path: str, file: File, now: os.stat_result) -> None:
        self.tree[path] = file
        if now.st_nlink > 1:
            self._holders[now.st_dev, now.st_ino] = path
        if now.st_ctime_ns < self._now and not file.torn:
            self.seen[path] = (now.st_ino, now.st_ctime_ns)


def mode_of(file: os.stat_result) -> int:
    return file.st_mode & MODE & ~SETID


def _content(descriptor: int, length: int) -> bytes:
    """The next bytes, fewer only at the end: every byte of a file that is kept passes here."""
    parts = []
    while length and (part := os.read(descriptor, length)):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _state(file: os.stat_result) -> tuple[int, int, int, int]:
    return file.st_size, file.st_mtime_ns, file.st_ctime_ns, file.st_mode
