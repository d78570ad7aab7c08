"""Whose the files of a workspace are."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from sandbox.sandbox import UID, Unusable
from sandbox.system import ROOTS

_SYSTEM = (*ROOTS, "/boot", "/dev", "/proc", "/sys", "/root", "/home", "/var", "/run", "/tmp")
"""What no workspace may be, or be above of."""


def give(workspace: Path, uid: int = UID) -> None:
    """Give a root worker's files in the workspace to the user that its tools are.

    Other users' files stay theirs, and so does a file that has a second name, which may lie
    anywhere. Nothing to do for any other worker. Raises Unusable, OSError.
    """
    if os.geteuid() != 0:
        return
    real = workspace.resolve(strict=True)
    if any(Path(path).is_relative_to(real) for path in _SYSTEM):
        raise Unusable(
            f"The workspace {real} belongs to the system, and a root worker would have to give it "
            "away: name a directory of its own."
        )
    if real.stat().st_uid == 0:
        os.chown(real, uid, uid)
    for _, folders, files, descriptor in os.fwalk(real, follow_symlinks=False):
        for name in (*folders, *files):
            with suppress(FileNotFoundError, NotADirectoryError):
                _give_one(name, descriptor, uid)


def _give_one(name: str, folder: int, uid: int) -> None:
    if _is_given(os.stat(name, dir_fd=folder, follow_symlinks=False)):
        return
    # By a descriptor: the name may be another file's by the time that it is used.
    descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        if not _is_given(os.fstat(descriptor)):
            os.chown(f"/proc/self/fd/{descriptor}", uid, uid)
    finally:
        os.close(descriptor)


def _is_given(found: os.stat_result) -> bool:
    """Whether it is another's, or none that can be given."""
    shared = stat.S_ISREG(found.st_mode) and found.st_nlink > 1
    return found.st_uid != 0 or shared or stat.S_ISLNK(found.st_mode)
