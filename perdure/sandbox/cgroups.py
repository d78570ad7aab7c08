"""Control groups: limits on memory and processes that all processes of a shell share."""

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from perdure.sandbox.sandbox import DEFAULT_LIMITS, ResourceLimits

_PREFIX = "sandbox-of-perdure-"
_ABANDONED_AFTER = 3600.0
"""Seconds after which an empty group is taken to be left behind, not about to be entered."""
_V1_FILES = {"memory": "memory.limit_in_bytes", "pids": "pids.max"}
"""The file with the limit of each controller, in version 1 of control groups."""

_V2_FILES = {"memory": "memory.max", "pids": "pids.max"}


@dataclass(frozen=True)
class ParentCgroup:
    """A folder in which groups can be made, and the files that set the limits of a group."""

    folder: Path
    limit_files: tuple[str, ...]

    def create(self, limits: ResourceLimits, cleanup: ExitStack) -> int:
        """Create a group; return a descriptor of its `cgroup.procs`. `cleanup` removes it."""
        group = self.folder / f"{_PREFIX}{uuid.uuid4().hex}"
        group.mkdir()
        cleanup.callback(_remove, group)
        for name in self.limit_files:
            limit = limits.processes if name == "pids.max" else limits.memory_bytes
            (group / name).write_text(str(limit))
        processes = os.open(group / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
        cleanup.callback(os.close, processes)
        return processes


@dataclass(frozen=True)
class Cgroups:
    """The control groups that this machine lets the worker make."""

    parents: tuple[ParentCgroup, ...] = ()

    @property
    def gaps(self) -> tuple[str, ...]:
        limited = {name.partition(".")[0] for parent in self.parents for name in parent.limit_files}
        gap = "short bursts beyond the limit of memory, which is only watched"
        return () if "memory" in limited else (gap,)

    def create(self, limits: ResourceLimits, cleanup: ExitStack) -> tuple[int, ...]:
        """Create a group under each parent; return descriptors to enter them by. Raises OSError."""
        return tuple(parent.create(limits, cleanup) for parent in self.parents)


NO_CGROUPS = Cgroups()


def detect_cgroups() -> Cgroups:
    """Find the parents in which a group can be made; remove what killed workers left there."""
    usable = []
    for parent in _find_parents():
        _remove_abandoned(parent.folder)
        with suppress(OSError), ExitStack() as cleanup:
            parent.create(DEFAULT_LIMITS, cleanup)
            usable.append(parent)
    return Cgroups(tuple(usable))


def _remove_abandoned(folder: Path) -> None:
    for group in folder.glob(f"{_PREFIX}*"):
        with suppress(FileNotFoundError):  # another worker was quicker
            if time.time() - group.stat().st_mtime > _ABANDONED_AFTER:
                _remove(group)


def _remove(group: Path) -> None:
    with suppress(OSError):  # a process is still in it; a later worker tries again
        group.rmdir()


def _find_parents() -> Iterator[ParentCgroup]:
    mounts = dict(_find_mounts())
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for kind in controllers.split(","):
            if kind in _V1_FILES and kind in mounts:
                yield ParentCgroup(_cgroup_folder(mounts[kind], path), (_V1_FILES[kind],))
        if not controllers and "" in mounts:
            yield from _find_v2_parent(mounts[""], path)


def _find_v2_parent(mount: Path, path: str) -> Iterator[ParentCgroup]:
    """Find the nearest group above ours that delegates: no group with processes can."""
    own_folder = _cgroup_folder(mount, path)
    for folder in (own_folder, *own_folder.parents):
        control = folder / "cgroup.subtree_control"
        controllers = control.read_text().split() if control.exists() else []
        if files := tuple(file for kind, file in _V2_FILES.items() if kind in controllers):
            yield ParentCgroup(folder, files)
        if files or folder == mount:
            return


def _cgroup_folder(mount: Path, path: str) -> Path:
    folder = mount / path.lstrip("/")
    return folder if folder.is_dir() else mount  # in a container, the path may be the host's


def _find_mounts() -> Iterator[tuple[str, Path]]:
    """Yield each controller of version 1 with its mount point, and version 2 under ''."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, mount, kind, options, *_ = line.split(" ")
        if kind == "cgroup2":
            yield "", Path(mount)
        elif kind == "cgroup":
            yield from ((kind, Path(mount)) for kind in options.split(",") if kind in _V1_FILES)
