"""A place in a workspace, and all that is done there."""

import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from sandbox.beneath import opened

_READING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
"""A pipe is not waited for, and a terminal does not become ours."""


@dataclass(frozen=True)
class Spot:
    """What is, or will be, at `path`: absolute, in `root`, and found to have no symlink in it.

    Where somebody puts a symlink in its way later, everything here fails, and nothing happens
    elsewhere. What is made here belongs to whoever has `root`. All methods raise OSError.
    """

    root: Path
    path: Path

    @property
    def parent(self) -> "Spot":
        return Spot(self.root, self.path.parent)

    def stat(self) -> os.stat_result | None:
        """Of what is there itself, be it a link; None where there is nothing."""
        try:
            found = opened(self.root, self.path, os.O_PATH | os.O_NOFOLLOW)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            return os.fstat(found)
        finally:
            os.close(found)

    def exists(self) -> bool:
        return self.stat() is not None

    def is_dir(self) -> bool:
        found = self.stat()
        return found is not None and stat.S_ISDIR(found.st_mode)

    def is_file(self) -> bool:
        found = self.stat()
        return found is not None and stat.S_ISREG(found.st_mode)

    def mode(self) -> int | None:
        """Its permissions."""
        found = self.stat()
        return None if found is None else found.st_mode & 0o7777

    def opened(self) -> BufferedReader:
        """To be read."""
        return os.fdopen(opened(self.root, self.path, _READING), "rb")

    def read(self, most: int) -> tuple[int, bytes]:
        """Its size, and at most that many of its first bytes."""
        with self.opened() as file:
            return os.fstat(file.fileno()).st_size, file.read(most)

    @contextmanager
    def scanned(self) -> Iterator[tuple[int, Iterator["os.DirEntry[str]"]]]:
        """A folder's descriptor, and what is in it; both to be used before this is left."""
        folder = opened(self.root, self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with os.scandir(folder) as entries:
                yield folder, entries
        finally:
            os.close(folder)

    def make_folder(self) -> None:
        with self._folder() as folder:
            os.mkdir(self.path.name, dir_fd=folder)
            made = os.open(self.path.name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
            try:
                self._give(made)
            finally:
                os.close(made)

    def remove_folder(self) -> None:
        with self._folder() as folder:
            os.rmdir(self.path.name, dir_fd=folder)

    def remove(self) -> None:
        with self._folder() as folder:
            os.unlink(self.path.name, dir_fd=folder)

    def staged(self, data: bytes, mode: int | None) -> "Spot":
        """A file with `data` beside this, to be put here: then all of it is here, or nothing.

        That holds even if the power fails. Without a `mode` the file gets the usual one.
        """
        aside = Spot(self.root, self.path.with_name(f".{uuid.uuid4().hex}.tmp"))
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with self._folder() as folder:
            made = os.open(aside.path.name, flags, 0o666, dir_fd=folder)
            try:
                with os.fdopen(made, "wb") as file:
                    self._give(made)
                    if mode is not None:
                        os.fchmod(made, mode)
                    file.write(data)
                    file.flush()
                    os.fsync(made)
            except BaseException:
                os.unlink(aside.path.name, dir_fd=folder)
                raise
        return aside

    def put(self, aside: "Spot") -> None:
        """What was staged takes this place."""
        with self._folder() as folder:
            os.replace(aside.path.name, self.path.name, src_dir_fd=folder, dst_dir_fd=folder)

    @contextmanager
    def _folder(self) -> Iterator[int]:
        """The folder that this is in."""
        folder = opened(self.root, self.path.parent, os.O_PATH | os.O_DIRECTORY)
        try:
            yield folder
        finally:
            os.close(folder)

    def _give(self, made: int) -> None:
        owner = self.root.stat()
        if os.geteuid() == 0 and owner.st_uid != 0:
            os.fchown(made, owner.st_uid, owner.st_gid)
