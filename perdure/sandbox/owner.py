"""The owner of the files in a root worker's workspaces."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from perdure.sandbox.sandbox import TOOLS_UID, SandboxUnusable
from perdure.sandbox.system import SYSTEM_ROOTS

_SYSTEM_FOLDERS = (
    *(*SYSTEM_ROOTS, "/boot", "/dev", "/proc", "/sys", "/root", "/home", "/var", "/run", "/tmp"),
)
"""Folders that must not be a workspace, nor lie in one."""


def chown_workspace(workspace: Path, uid: int = TOOLS_UID) -> None:
    """Change the owner of root's files in the workspace to the tools' user.

    Other users' files keep their owner, and so does a file with a second hard link, which may lie
    anywhere. Does nothing unless the worker is root. Raises SandboxUnusable, OSError.
    """
    if os.geteuid() != 0:
        return
    real = workspace.resolve(strict=True)
    if any(Path(path).is_relative_to(real) for path in _SYSTEM_FOLDERS):
        raise SandboxUnusable(
            f"The workspace {real} belongs to the system, and a root worker would have to give it "
            "away: name a directory of its own."
        )
    if real.stat().st_uid == 0:
        os.chown(real, uid, uid)
    for _, folders, files, descriptor in os.fwalk(real, follow_symlinks=False):
        for name in (*folders, *files):
            with suppress(FileNotFoundError, NotADirectoryError):
                _chown_entry(name, descriptor, uid)


def _chown_entry(name: str, folder: int, uid: int) -> None:
    if _keeps_owner(os.stat(name, dir_fd=folder, follow_symlinks=False)):
        return
    # By a descriptor: the name may lead to another file by the time that it is used.
    descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        if not _keeps_owner(os.fstat(descriptor)):
            os.chown(f"/proc/self/fd/{descriptor}", uid, uid)
    finally:
        os.close(descriptor)


def _keeps_owner(status: os.stat_result) -> bool:
    """Return whether the file is not root's, or is a symlink or a file with a second hard link."""
    shared = stat.S_ISREG(status.st_mode) and status.st_nlink > 1
    return status.st_uid != 0 or shared or stat.S_ISLNK(status.st_mode)
