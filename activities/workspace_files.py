"""What a workspace says of itself: read by the worker, and so never beyond the workspace."""

import os
import platform
import stat
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from agent.recall import LONGEST_PART, Facts, Instructions
from tools.workspace import printable

MOST_LISTED = 40
"""Entries of the workspace that are named."""

MOST_COUNTED = 10_000
_SHORT = 4096


class Unreadable(OSError):
    """Why a file is not read, as the rest of a sentence about it."""


def read_inside(root: Path, path: Path, limit: int, *, tail: bool = False) -> bytes:
    """The first bytes of a regular file, or the last: the file is in `root`, or nothing is read.

    A symlink is followed where it stays in `root`, and not beyond it even if somebody replaces a
    directory on the way while this looks. Raises OSError.
    """
    real = path.resolve(strict=True)
    if not real.is_relative_to(root.resolve()):
        raise Unreadable("it leads out of the workspace")
    file = opened(root.resolve(), real)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise Unreadable("it is not a regular file")
        return os.pread(file, limit, max(0, found.st_size - limit) if tail else 0)
    finally:
        os.close(file)


def opened(root: Path, real: Path) -> int:
    """A descriptor of `real`, reached name by name from `root` without a symlink.

    Opening a pipe does not wait for its other end. Raises OSError.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    here = os.open(root, flags | os.O_DIRECTORY)
    for name in real.relative_to(root).parts:
        try:
            there = os.open(name, flags, dir_fd=here)
        finally:
            os.close(here)
        here = there
    return here


def instructions_in(root: Path, folder: Path, names: Sequence[str]) -> list[Instructions]:
    """The files of a folder that tell an agent about it, each text once."""
    found: dict[str, Instructions] = {}
    for name in names:
        path = folder / name
        try:
            raw = read_inside(root, path, LONGEST_PART + 1)
            where = printable(path.relative_to(root).as_posix())
        except (OSError, RuntimeError, ValueError):  # not there, a loop of links, a NUL
            continue
        text = raw.decode(errors="replace").strip()
        if text and "\0" not in text:
            found.setdefault(text, Instructions(name=where, text=text))
    return list(found.values())


def facts_of(workspace: Path, day: str) -> Facts | None:
    """What there is to know of a workspace at first sight; None where it is empty or closed."""
    try:
        with os.scandir(workspace) as scanned:
            entries = sorted(islice(scanned, MOST_COUNTED), key=lambda entry: entry.name)
    except OSError:
        return None
    if not entries:
        return None
    names = [_named(entry) for entry in entries if not entry.name.startswith(".")]
    return Facts(
        directory=printable(workspace),
        system=f"{platform.system()} {platform.machine()}",
        day=day,
        entries=tuple(names[:MOST_LISTED]),
        more=max(0, len(names) - MOST_LISTED),
        git=_git(workspace),
    )


def _named(entry: "os.DirEntry[str]") -> str:
    return printable(entry.name) + ("/" if entry.is_dir(follow_symlinks=False) else "")


def _git(workspace: Path) -> str | None:
    """The branch and the last commit, from git's files.

    Not from `git` itself: it runs what a repository's own configuration names, as the worker.
    """
    if not os.path.lexists(workspace / ".git"):
        return None
    try:
        raw = read_inside(workspace, workspace / ".git/HEAD", _SHORT)
        head = raw.decode().partition("\n")[0][:200]
        branch = head.removeprefix("ref: refs/heads/")
        if branch == head:
            return f"detached at {head[:8]}"
        return f"branch {branch}{_last_commit(workspace, branch)}"
    except (OSError, RuntimeError, ValueError):
        return "a repository"


def _last_commit(workspace: Path, branch: str) -> str:
    """From the log of the branch: where it is, by whom and how it got there, in a line."""
    try:
        log = read_inside(workspace, workspace / ".git/logs/refs/heads" / branch, _SHORT, tail=True)
    except OSError:
        return ""
    last = log.decode(errors="replace").strip().rpartition("\n")[2]
    commit = last.split(" ")[1][:8] if last.count(" ") > 1 else ""
    action, _, subject = last.partition("\t")[2].partition(": ")
    said = f": {subject[:200]}" if action.startswith("commit") else ""
    return f", last commit {commit}{said}" if commit else ""
