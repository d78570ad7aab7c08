"""Opening a path beneath a folder, safe from symlinks that are swapped in meanwhile."""

import ctypes
import errno
import os
import struct
from functools import cache
from pathlib import Path

_OPENAT2 = 437
_NO_MAGIC_LINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_RESOLVE = _NO_MAGIC_LINKS | _NO_SYMLINKS | _BENEATH

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def open_beneath(root: Path, path: Path, flags: int) -> int:
    """Open `path`, which lies in `root`, without following any symlink below `root`.

    Creates no file. Raises OSError: ELOOP where a component of the path is a symlink, or the last
    one is, unless `flags` ask for the link itself (O_PATH and O_NOFOLLOW).
    """
    flags |= os.O_CLOEXEC
    root_descriptor = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        name = os.fsencode(path.relative_to(root))
        if _has_openat2():
            return _openat2(root_descriptor, name, flags)
        return _open_name_by_name(root_descriptor, path.relative_to(root).parts, flags)
    finally:
        os.close(root_descriptor)


def _openat2(root_descriptor: int, name: bytes, flags: int) -> int:
    how = struct.pack("=QQQ", flags, 0, _RESOLVE)
    while True:
        descriptor = int(
            _libc.syscall(_OPENAT2, root_descriptor, name, how, ctypes.c_size_t(len(how)))
        )
        if descriptor >= 0:
            return descriptor
        number = ctypes.get_errno()
        # A component was renamed meanwhile: the kernel wants the call to be repeated.
        if number not in (errno.EAGAIN, errno.EINTR):
            raise OSError(number, os.strerror(number), os.fsdecode(name))


def _open_name_by_name(root_descriptor: int, names: tuple[str, ...], flags: int) -> int:
    """Open the path as `_openat2` does, one component at a time."""
    folder = os.dup(root_descriptor)
    for name in names[:-1]:
        try:
            next_folder = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
        finally:
            os.close(folder)
        folder = next_folder
    try:
        return os.open(names[-1] if names else ".", flags | os.O_NOFOLLOW, dir_fd=folder)
    finally:
        os.close(folder)


@cache
def _has_openat2() -> bool:
    """Try openat2, which Linux 5.6 introduced and some containers forbid."""
    top = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.close(_openat2(top, b".", os.O_PATH | os.O_CLOEXEC))
    except OSError:
        return False
    finally:
        os.close(top)
    return True
