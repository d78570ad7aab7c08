"""Reading instructions and facts from a workspace, never from outside of it."""

import os
import platform
import stat
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from perdure.agent.knowledge.recall import MAX_PART_BYTES, InstructionFile, WorkspaceFacts
from perdure.sandbox.safe_path import open_beneath
from perdure.tools.workspace import printable

MAX_LISTED_ENTRIES = 40
"""Most entries of a workspace that are listed to the agent."""

MAX_SCANNED_ENTRIES = 10_000
_GIT_FILE_BYTES = 4096


class UnreadableFile(OSError):
    """A file that is not read; the text ends a sentence about the file."""


def read_inside(root: Path, path: Path, limit: int, *, tail: bool = False) -> bytes:
    """Read the first bytes of a regular file in `root`, or the last with `tail`.

    Symlinks are followed only within `root`, even if somebody replaces a directory on the way
    meanwhile. Raises OSError.
    """
    root, real = root.resolve(), path.resolve(strict=True)
    if not real.is_relative_to(root):
        raise UnreadableFile("it leads out of the workspace")
    file = open_beneath(root, real, os.O_RDONLY | os.O_NONBLOCK)  # a pipe does not wait
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableFile("it is not a regular file")
        return os.pread(file, limit, max(0, status.st_size - limit) if tail else 0)
    finally:
        os.close(file)


def read_instructions(root: Path, folder: Path, names: Sequence[str]) -> list[InstructionFile]:
    """Read the instruction files of a folder, each text once."""
    instructions: dict[str, InstructionFile] = {}
    for name in names:
        path = folder / name
        try:
            raw = read_inside(root, path, MAX_PART_BYTES + 1)
            where = printable(path.relative_to(root).as_posix())
        except (OSError, RuntimeError, ValueError):  # not there, a loop of links, a NUL
            continue
        text = raw.decode(errors="replace").strip()
        if text and "\0" not in text:
            instructions.setdefault(text, InstructionFile(name=where, text=text))
    return list(instructions.values())


def collect_facts(workspace: Path, day: str) -> WorkspaceFacts | None:
    """Collect the facts of a workspace; return None if it is empty or unreadable."""
    try:
        with os.scandir(workspace) as scanned:
            entries = sorted(islice(scanned, MAX_SCANNED_ENTRIES), key=lambda entry: entry.name)
    except OSError:
        return None
    if not entries:
        return None
    names = [
        printable(entry.name) + "/" * entry.is_dir(follow_symlinks=False)
        for entry in entries
        if not entry.name.startswith(".")
    ]
    return WorkspaceFacts(
        directory=printable(workspace),
        system=f"{platform.system()} {platform.machine()}",
        day=day,
        entries=tuple(names[:MAX_LISTED_ENTRIES]),
        more_entries=max(0, len(names) - MAX_LISTED_ENTRIES),
        git=_git_summary(workspace),
    )


def _git_summary(workspace: Path) -> str | None:
    """Return the branch and the last commit, read from git's files.

    The `git` program would run commands that the repository's configuration names.
    """
    if not os.path.lexists(workspace / ".git"):
        return None
    try:
        raw = read_inside(workspace, workspace / ".git/HEAD", _GIT_FILE_BYTES)
        head = raw.decode().partition("\n")[0][:200]
        branch = head.removeprefix("ref: refs/heads/")
        if branch == head:
            return f"detached at {head[:8]}"
        return f"branch {branch}{_last_commit(workspace, branch)}"
    except (OSError, RuntimeError, ValueError):
        return "a repository"


def _last_commit(workspace: Path, branch: str) -> str:
    """Return the last commit and its subject from the log of the branch."""
    try:
        log = read_inside(
            workspace, workspace / ".git/logs/refs/heads" / branch, _GIT_FILE_BYTES, tail=True
        )
    except OSError:
        return ""
    last = log.decode(errors="replace").strip().rpartition("\n")[2]
    commit = last.split(" ")[1][:8] if last.count(" ") > 1 else ""
    action, _, subject = last.partition("\t")[2].partition(": ")
    subject_text = f": {subject[:200]}" if action.startswith("commit") else ""
    return f", last commit {commit}{subject_text}" if commit else ""
