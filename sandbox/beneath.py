"""Opening what lies beneath a folder, whatever somebody does to the way there meanwhile."""

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


def opened(root: Path, path: Path, flags: int) -> int:
    """A descriptor of `path`, which lies in `root`: through no symlink that is below `root`.

    What is to be created, is created by other means. Raises OSError: ELOOP where there is a symlink
    on the way, or at its end unless `flags` ask for the link itself (O_PATH and O_NOFOLLOW).
    """
    flags |= os.O_CLOEXEC
    top = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        name = os.fsencode(path.relative_to(root))
        if _has_openat2():
            return _openat2(top, name, flags)
        return _walked(top, path.relative_to(root).parts, flags)
    finally:
        os.close(top)


def _openat2(top: int, name: bytes, flags: int) -> int:
    how = struct.pack("=QQQ", flags, 0, _RESOLVE)
    while True:
        found = int(_libc.syscall(_OPENAT2, top, name, how, ctypes.c_size_t(len(how))))
        if found >= 0:
            return found
        number = ctypes.get_errno()
        # Somebody renamed something on the way: the kernel asks to be asked again.
        if number not in (errno.EAGAIN, errno.EINTR):
            raise OSError(number, os.strerror(number), os.fsdecode(name))


def _walked(top: int, names: tuple[str, ...], flags: int) -> int:
    """The same, name by name."""
    here = os.dup(top)
    for name in names[:-1]:
        try:
            there = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
        finally:
            os.close(here)
        here = there
    try:
        return os.open(names[-1] if names else ".", flags | os.O_NOFOLLOW, dir_fd=here)
    finally:
        os.close(here)


@cache
def _has_openat2() -> bool:
    """Linux 5.6 has it, and some containers forbid it."""
    top = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.close(_openat2(top, b".", os.O_PATH | os.O_CLOEXEC))
    except OSError:
        return False
    finally:
        os.close(top)
    return True
