"""The parts of the system that a sandbox shows, and the owner of the files in a workspace."""

import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from perdure.sandbox.sandbox import TOOLS_UID, SandboxUnusable

PYTHON = Path(sys.executable).resolve()
"""The interpreter without its virtual environment, which is the worker's and not for tools."""

SYSTEM_ROOTS = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix"),
)
"""The folders in which systems keep programs, libraries and their configuration."""

_SYSTEM_FOLDERS = (
    *(*SYSTEM_ROOTS, "/boot", "/dev", "/proc", "/sys", "/root", "/home", "/var", "/run", "/tmp"),
)
"""Folders that must not be a workspace, nor lie in one."""

EXTRA_PATHS = ("/sys/devices/system/cpu",)

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")

_LINKED_FILES = ("/etc/resolv.conf", "/etc/localtime", "/etc/hosts")
_PATH_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def existing_roots() -> Iterator[Path]:
    """Yield the roots that this machine has; some may be symlinks."""
    return (path for path in map(Path, SYSTEM_ROOTS) if path.exists())


def find_extra_paths(environment: Mapping[str, str]) -> list[Path]:
    """Find needed paths outside of the roots: this Python, symlink targets, certificates."""
    variable_paths = [Path(environment[name]) for name in _PATH_VARIABLES if environment.get(name)]
    links = [Path(path).resolve() for path in _LINKED_FILES]
    paths = [Path(sys.base_prefix).resolve(), *links, *variable_paths, *map(Path, EXTRA_PATHS)]
    existing = filter(Path.exists, paths)
    return [path for path in existing if not any(map(path.is_relative_to, SYSTEM_ROOTS))]


def build_search_path(environment: Mapping[str, str], readable: list[Path]) -> str:
    """Build PATH from its folders that a sandbox shows, with this Python's at the end."""
    reachable = [*map(Path, SYSTEM_ROOTS), *readable]
    folders = [*environment.get("PATH", os.defpath).split(os.pathsep), str(PYTHON.parent)]
    visible = [folder for folder in folders if any(map(Path(folder).is_relative_to, reachable))]
    return os.pathsep.join(dict.fromkeys(visible))


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
