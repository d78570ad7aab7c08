"""Control groups: limits that the kernel holds for all processes of a shell together."""

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from sandbox.limits import USUAL, Limits

_OURS = "sandbox-of-perdure-"
_FORGOTTEN = 3600.0
"""Seconds after which a group that nobody is in is no longer about to be entered."""

_FIRST = {"memory": "memory.limit_in_bytes", "pids": "pids.max"}
"""Where the first version of control groups has the limit of each kind."""

_SECOND = {"memory": "memory.max", "pids": "pids.max"}


@dataclass(frozen=True)
class Parent:
    """A folder in which groups can be made, with the files in them that hold limits."""

    folder: Path
    files: tuple[str, ...]

    def made(self, limits: Limits, over: ExitStack) -> int:
        """A new group's list of processes; the group is gone again when that is over."""
        group = self.folder / f"{_OURS}{uuid.uuid4().hex}"
        group.mkdir()
        over.callback(_removed, group)
        for name in self.files:
            most = limits.processes if name == "pids.max" else limits.memory
            (group / name).write_text(str(most))
        processes = os.open(group / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
        over.callback(os.close, processes)
        return processes


@dataclass(frozen=True)
class Groups:
    """What this machine lets us limit."""

    parents: tuple[Parent, ...] = ()

    @property
    def gaps(self) -> tuple[str, ...]:
        if any(name.startswith("memory.") for one in self.parents for name in one.files):
            return ()
        return ("short bursts beyond the limit of memory, which is only watched",)

    def joined(self, limits: Limits, over: ExitStack) -> tuple[int, ...]:
        """The lists of processes of new groups, to be entered. Raises OSError."""
        return tuple(parent.made(limits, over) for parent in self.parents)


NO_GROUPS = Groups()


def groups() -> Groups:
    """Tried by making one; what killed workers left of theirs is removed."""
    usable = []
    for parent in _candidates():
        _tidy(parent.folder)
        with suppress(OSError), ExitStack() as over:
            parent.made(USUAL, over)
            usable.append(parent)
    return Groups(tuple(usable))


def _tidy(folder: Path) -> None:
    for left in folder.glob(f"{_OURS}*"):
        with suppress(FileNotFoundError):  # another worker was quicker
            if time.time() - left.stat().st_mtime > _FORGOTTEN:
                _removed(left)


def _removed(group: Path) -> None:
    with suppress(OSError):  # somebody is in it; a later worker tries again
        group.rmdir()


def _candidates() -> Iterator[Parent]:
    mounts = dict(_mounts())
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for kind in controllers.split(","):
            if kind in _FIRST and kind in mounts:
                yield Parent(_below(mounts[kind], path), (_FIRST[kind],))
        if not controllers and "" in mounts and (found := _second(mounts[""], path)) is not None:
            yield found


def _second(mount: Path, path: str) -> Parent | None:
    """The nearest group above ours that hands on any limits: one with processes cannot."""
    own = _below(mount, path)
    for folder in (own, *own.parents):
        handed = set(_text(folder / "cgroup.subtree_control").split())
        if files := tuple(file for kind, file in _SECOND.items() if kind in handed):
            return Parent(folder, files)
        if folder == mount:
            break
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _below(mount: Path, path: str) -> Path:
    folder = mount / path.lstrip("/")
    return folder if folder.is_dir() else mount  # in a container, the path may be the host's


def _mounts() -> Iterator[tuple[str, Path]]:
    """Where each kind is mounted; the second version under an empty name."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, options, *_ = line.split(" ")
        if kind == "cgroup2":
            yield "", Path(where)
        elif kind == "cgroup":
            yield from ((one, Path(where)) for one in options.split(",") if one in _FIRST)
