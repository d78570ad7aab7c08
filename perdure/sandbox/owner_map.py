"""Mount a folder over itself so that its owner appears as another user, then exec a program.

A program of its own (`python owner_map.py FOLDER UID ARGV...`, Linux 5.12, as root), because the
mount is made in a mount namespace that only the program sees. Files of the folder's owner and group
appear as those of UID, and files that UID makes belong to the folder's owner and group. Nothing on
the disk changes. Files of other users appear as nobody's.
"""

import ctypes
import os
import signal
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager

CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_REC, MS_SLAVE = 0x4000, 0x80000
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
AT_FDCWD, AT_EMPTY_PATH, AT_RECURSIVE = -100, 0x1000, 0x8000
OPEN_TREE_CLONE, OPEN_TREE_CLOEXEC = 1, 0x80000
MOVE_MOUNT_F_EMPTY_PATH = 4
MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV, MOUNT_ATTR_IDMAP = 0x2, 0x4, 0x100000

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def main(folder: str, uid: int, argv: list[str]) -> None:
    status = os.stat(folder)  # noqa: PTH116 - pathlib starts slowly
    _check(_libc.unshare(CLONE_NEWNS))
    # Mounts of the host still arrive in this namespace; none of ours arrives there.
    _check(_libc.mount(b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_SLAVE), None))
    with _user_namespace(status.st_uid, status.st_gid, uid) as namespace:
        mount_mapped(os.fsencode(folder), namespace)
    os.chdir(folder)  # the working directory was the one below the mount
    os.execv(argv[0], argv)


def mount_mapped(folder: bytes, namespace: int) -> None:
    """Mount the folder, with what is mounted in it, over itself with the namespace's ids."""
    flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE
    tree = _check(_libc.syscall(OPEN_TREE, AT_FDCWD, folder, flags))
    attributes = MOUNT_ATTR_IDMAP | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV
    request = struct.pack("=QQQQ", attributes, 0, 0, namespace)
    size = ctypes.c_size_t(len(request))
    _check(_libc.syscall(MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH, request, size))
    _check(_libc.syscall(MOVE_MOUNT, tree, b"", AT_FDCWD, folder, MOVE_MOUNT_F_EMPTY_PATH))
    os.close(tree)


@contextmanager
def _user_namespace(owner: int, group: int, uid: int) -> Iterator[int]:
    """Make a user namespace that maps `owner` and `group` to `uid`; yield its descriptor."""
    is_ready, report = os.pipe()
    child = os.fork()
    if child == 0:
        _hold_user_namespace(report)
    try:
        os.close(report)
        if not os.read(is_ready, 1):
            raise PermissionError(1, "user namespaces cannot be made")
        for name, number in (("uid_map", owner), ("gid_map", group)):
            with open(f"/proc/{child}/{name}", "w") as file:  # noqa: PTH123
                file.write(f"{number} {uid} 1")
        namespace = os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(is_ready)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    yield namespace
    os.close(namespace)


def _hold_user_namespace(report: int) -> None:
    """Enter a user namespace and report it; a process that was killed holds none."""
    if _libc.unshare(CLONE_NEWUSER) == 0:
        os.write(report, b"1")
        signal.pause()
    os._exit(1)


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


if __name__ == "__main__":
    try:
        main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
    except OSError as error:
        sys.exit(f"the owner of the workspace cannot be mapped: {error.strerror}")
