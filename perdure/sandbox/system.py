"""The parts of the system that a sandbox shows."""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

PYTHON = Path(sys.executable).resolve()
"""The interpreter without its virtual environment, which is the worker's and not for tools."""

SYSTEM_ROOTS = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix"),
)
"""The folders in which systems keep programs, libraries and their configuration."""

SYSTEM_FOLDERS = (
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
