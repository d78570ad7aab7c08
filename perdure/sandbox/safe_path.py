"""File operations in a workspace that no symlink can lead out of it."""

import ctypes
import errno
import os
import stat
import struct
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from io import BufferedReader
from pathlib import Path

_OPENAT2 = 437
_NO_MAGIC_LINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_RESOLVE = _NO_MAGIC_LINKS | _NO_SYMLINKS | _BENEATH

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

_READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
"""O_NONBLOCK: opening a pipe does not wait. O_NOCTTY: a terminal does not become ours."""


@dataclass(frozen=True)
class SafePath:
    """An absolute path in `root`, resolved: without symlinks when it was made.

    Where a component becomes a symlink later, every method fails instead of following it. New
    files and folders get the owner of `root`. All methods raise OSError.
    """

    root: Path
    path: Path

    @property
    def parent(self) -> "SafePath":
        return SafePath(self.root, self.path.parent)

    def stat(self) -> os.stat_result | None:
        """Return the status of the file or symlink itself; None where there is none."""
        try:
            descriptor = open_beneath(self.root, self.path, os.O_PATH | os.O_NOFOLLOW)
        except (FileNotFoundError, NotADirectoryError):
            return None
        with _closing(descriptor):
            return os.fstat(descriptor)

    def exists(self) -> bool:
        return self.stat() is not None

    def is_dir(self) -> bool:
        status = self.stat()
        return status is not None and stat.S_ISDIR(status.st_mode)

    def is_file(self) -> bool:
        status = self.stat()
        return status is not None and stat.S_ISREG(status.st_mode)

    def mode(self) -> int | None:
        """Return the permission bits; None where there is no file."""
        status = self.stat()
        return None if status is None else status.st_mode & 0o7777

    def open(self) -> BufferedReader:
        """Open the file for reading."""
        return os.fdopen(open_beneath(self.root, self.path, _READ_FLAGS), "rb")

    def read(self, limit: int) -> tuple[int, bytes]:
        """Return the file's size and its first bytes, at most `limit`."""
        with self.open() as file:
            return os.fstat(file.fileno()).st_size, file.read(limit)

    @contextmanager
    def scan(self) -> Iterator[tuple[int, Iterator["os.DirEntry[str]"]]]:
        """Open the folder: a descriptor and its entries, both valid inside the `with` block."""
        folder = open_beneath(self.root, self.path, os.O_RDONLY | os.O_DIRECTORY)
        with _closing(folder), os.scandir(folder) as entries:
            yield folder, entries

    def make_folder(self) -> None:
        with self._open_parent() as folder:
            os.mkdir(self.path.name, dir_fd=folder)
            descriptor = os.open(self.path.name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
            with _closing(descriptor):
                self._chown(descriptor)

    def remove_folder(self) -> None:
        with self._open_parent() as folder:
            os.rmdir(self.path.name, dir_fd=folder)

    def remove(self) -> None:
        with self._open_parent() as folder:
            os.unlink(self.path.name, dir_fd=folder)

    def stage(self, data: bytes, mode: int | None) -> "SafePath":
        """Write `data` to a synced temporary file beside this path, for `commit`.

        The file appears at this path wholly or not at all, even if the power fails. Without a
        `mode` it gets the usual one.
        """
        staged = SafePath(self.root, self.path.with_name(f".{uuid.uuid4().hex}.tmp"))
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with self._open_parent() as folder:
            descriptor = os.open(staged.path.name, flags, 0o666, dir_fd=folder)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    self._chown(descriptor)
                    if mode is not None:
                        os.fchmod(descriptor, mode)
                    file.write(data)
                    file.flush()
                    os.fsync(descriptor)
            except BaseException:
                os.unlink(staged.path.name, dir_fd=folder)
                raise
        return staged

    def commit(self, staged: "SafePath") -> None:
        """Rename the staged file to this path."""
        with self._open_parent() as folder:
            os.replace(staged.path.name, self.path.name, src_dir_fd=folder, dst_dir_fd=folder)

    def _open_parent(self) -> AbstractContextManager[int]:
        return _closing(open_beneath(self.root, self.path.parent, os.O_PATH | os.O_DIRECTORY))

    def _chown(self, descriptor: int) -> None:
        owner = self.root.stat()
        if os.geteuid() == 0 and owner.st_uid != 0:
            os.fchown(descriptor, owner.st_uid, owner.st_gid)


@contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_beneath(root: Path, path: Path, flags: int) -> int:
    """Open `path`, which lies in `root`, without following any symlink below `root`.

    Creates no file. Raises OSError: ELOOP where a component of the path is a symlink, or the last
    one is, unless `flags` ask for the link itself (O_PATH and O_NOFOLLOW).
    """
    flags |= os.O_CLOEXEC
    root_descriptor = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    with _closing(root_descriptor):
        if _has_openat2():
            return _openat2(root_descriptor, os.fsencode(path.relative_to(root)), flags)
        return _open_name_by_name(root_descriptor, path.relative_to(root).parts, flags)


def _openat2(root_descriptor: int, name: bytes, flags: int) -> int:
    how = struct.pack("=QQQ", flags, 0, _RESOLVE)
    while True:
        size = ctypes.c_size_t(len(how))
        if (descriptor := int(_libc.syscall(_OPENAT2, root_descriptor, name, how, size))) >= 0:
            return descriptor
        number = ctypes.get_errno()
        # A component was renamed meanwhile: the kernel wants the call to be repeated.
        if number not in (errno.EAGAIN, errno.EINTR):
            raise OSError(number, os.strerror(number), os.fsdecode(name))


def _open_name_by_name(root_descriptor: int, names: tuple[str, ...], flags: int) -> int:
    """Open the path as `_openat2` does, one component at a time."""
    folder = os.dup(root_descriptor)
    for name in names[:-1]:
        with _closing(folder):
            folder = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    with _closing(folder):
        return os.open(names[-1] if names else ".", flags | os.O_NOFOLLOW, dir_fd=folder)


@cache
def _has_openat2() -> bool:
    """Try openat2, which Linux 5.6 introduced and some containers forbid."""
    top = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    with _closing(top), suppress(OSError):
        os.close(_openat2(top, b".", os.O_PATH | os.O_CLOEXEC))
        return True
    return False
