"""The owner of the files in a root worker's workspaces, whose commands run as another user.

A conversation's own folder is given to that user. The owners in a directory of somebody else are
left alone: commands see it through a mount in which its owner appears as the tools' user.
"""

import os
import stat
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from perdure.sandbox.sandbox import TOOLS_UID, SandboxUnusable
from perdure.sandbox.system import PYTHON, SYSTEM_FOLDERS

_OWNER_MAP = Path(__file__).with_name("owner_map.py")
_TRIAL_TIMEOUT = 30.0
"""Seconds; generous, for a busy machine."""


def prepare_owner(workspace: Path, own_folders: Path) -> None:
    """Let the tools' user write the workspace; a folder in `own_folders` is given to that user.

    Does nothing unless the worker is root. Raises SandboxUnusable, OSError.
    """
    if os.geteuid() != 0:
        return
    real = _resolve(workspace)
    if real.is_relative_to(own_folders.resolve()):
        _chown_all(real)
    else:
        _check_writable(real)


def build_owner_map(workspace: Path) -> Sequence[str]:
    """Build the beginning of a command line that maps the workspace's owner to the tools' user.

    It is empty where nothing has to be mapped. Raises SandboxUnusable, OSError.
    """
    if os.geteuid() != 0:
        return ()
    real = _resolve(workspace)
    if real.stat().st_uid == TOOLS_UID or find_mapping_error(real) is not None:
        return ()
    return (str(PYTHON), "-I", "-S", str(_OWNER_MAP), str(real), str(TOOLS_UID))


def _resolve(workspace: Path) -> Path:
    """Resolve the workspace. Raises SandboxUnusable if it is the system's, and OSError."""
    real = workspace.resolve(strict=True)
    if any(Path(path).is_relative_to(real) for path in SYSTEM_FOLDERS):
        raise SandboxUnusable(
            f"The workspace {real} belongs to the system, and commands could change it: name a "
            "directory of its own."
        )
    return real


def find_mapping_error(folder: Path) -> str | None:
    """Find why the owner of the folder cannot be mapped, by a trial; None if it can be."""
    status = folder.stat()
    return _try_mapping(folder, (status.st_dev, status.st_ino, status.st_uid, status.st_gid))


@lru_cache(maxsize=256)
def _try_mapping(folder: Path, _identity: tuple[int, ...]) -> str | None:
    argv = [str(PYTHON), "-I", "-S", str(_OWNER_MAP), str(folder), str(TOOLS_UID), "/bin/true"]
    trial = subprocess.run(
        argv, capture_output=True, text=True, timeout=_TRIAL_TIMEOUT, check=False
    )
    if trial.returncode == 0:
        return None
    return trial.stderr.strip().rpartition("\n")[2] or f"the trial ended with {trial.returncode}"


def _check_writable(folder: Path) -> None:
    status = folder.stat()
    if status.st_uid == TOOLS_UID or status.st_mode & stat.S_IWOTH:
        return
    if error := find_mapping_error(folder):
        raise SandboxUnusable(
            f"Commands run as user {TOOLS_UID}, who may not write {folder}, and {error}. Nothing "
            "was changed. Run the worker as the user who owns the directory, leave --workspace "
            f"out, or give the directory away: `chown -R {TOOLS_UID}:{TOOLS_UID} {folder}`."
        )


def _chown_all(workspace: Path, uid: int = TOOLS_UID) -> None:
    """Change the owner of root's files in the workspace to the tools' user.

    Other users' files keep their owner, and so does a file with a second hard link, which may lie
    anywhere. Raises OSError.
    """
    real = workspace.resolve(strict=True)
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
