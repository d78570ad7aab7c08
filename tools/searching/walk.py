"""Going through the files of a workspace: bounded in time, and stopped when nobody waits."""

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TypeVar

from sandbox.spot import Spot
from tools.searching.ignored import Rules, ignored, rules_in
from tools.threads import in_thread

LONGEST = 30.0
"""Seconds that one search may take; what was found until then is told."""

MOST_FILES = 100_000
"""Files that one search considers."""

NEVER = frozenset({".git", ".hg", ".svn"})
"""Folders that nobody looks into who looks for files."""

T = TypeVar("T")


class Search:
    """How long a search may go on, and what it could not see."""

    def __init__(self, seconds: float = LONGEST) -> None:
        self._end = time.monotonic() + seconds
        self._stopped = Event()
        self.unreadable = 0
        self.too_many = False

    @property
    def left(self) -> float:
        """Seconds; none are left to a search that was stopped."""
        return 0.0 if self._stopped.is_set() else max(0.0, self._end - time.monotonic())

    def stop(self) -> None:
        self._stopped.set()

    def notes(self) -> list[str]:
        """What the model must know of what it is not shown."""
        said = {
            f"[{self.unreadable:,} files or directories could not be read]": self.unreadable,
            f"[Only {MOST_FILES:,} files were looked at: give a narrower `path`]": self.too_many,
            "[The search took too long and was stopped: give a narrower `path`]": not self.left,
        }
        return [note for note, holds in said.items() if holds]


async def searched(work: Callable[[Search], T]) -> T:
    """What `work` finds, in a thread of its own; who cancels this stops it as well."""
    search = Search()
    try:
        return await in_thread(lambda: work(search))
    except asyncio.CancelledError:
        search.stop()
        raise


@dataclass(frozen=True)
class Found:
    """A file, or a link, by its path relative to the walk's root, with `/` between the names.

    `modified` is in nanoseconds of any clock, as the file system has it.
    """

    path: str
    modified: int
    is_link: bool


def newest(root: Path, start: Path, wanted: Callable[[str], bool], search: Search) -> list[Found]:
    """The files in and below `start` whose path from there is wanted, those changed last first."""
    depth = len(start.relative_to(root).parts)
    found: list[Found] = []
    for one in files(root, start, search):
        if len(found) == MOST_FILES:
            search.too_many = True
            break
        if wanted("/".join(one.path.split("/")[depth:])):
            found.append(one)
    return sorted(found, key=lambda one: (-one.modified, one.path))


def files(root: Path, start: Path, search: Search) -> Iterator[Found]:
    """What is in and below `start`, which lies in `root`, in no good order.

    No link is followed. Left out are the version control's own folders and whatever the
    `.gitignore` files from `root` on say, unless `start` itself is such a place.
    """
    names = start.relative_to(root).parts
    waiting = [(names, _rules_above(root, names))]
    while waiting:
        names, rules = waiting.pop()
        folder = Spot(root, root.joinpath(*names))
        own = rules_in(folder, len(names))
        rules = (*rules, own) if own else rules
        for entry in _entries(folder, search):
            inner, is_folder = (*names, entry.name), entry.is_dir(follow_symlinks=False)
            if ignored(rules, inner, is_folder):
                continue
            if is_folder and entry.name not in NEVER:
                waiting.append((inner, rules))
            elif (found := None if is_folder else _found(entry, inner, search)) is not None:
                yield found


def _rules_above(root: Path, names: Sequence[str]) -> tuple[Rules, ...]:
    """The rules of the folders above; none where they ignore the place itself."""
    rules: tuple[Rules, ...] = ()
    for depth, _ in enumerate(names):
        own = rules_in(Spot(root, root.joinpath(*names[:depth])), depth)
        rules = (*rules, own) if own else rules
        if ignored(rules, names[: depth + 1], is_folder=True):
            return ()
    return rules


def _entries(folder: Spot, search: Search) -> Iterator[os.DirEntry[str]]:
    try:
        with folder.scanned() as (_, entries):
            for entry in entries:
                if not search.left:
                    return
                yield entry
    except OSError:
        search.unreadable += 1


def _found(entry: os.DirEntry[str], names: Sequence[str], search: Search) -> Found | None:
    try:
        seen = entry.stat(follow_symlinks=False)
    except FileNotFoundError:  # it was there a moment ago
        return None
    except OSError:
        search.unreadable += 1
        return None
    if entry.is_symlink() or entry.is_file(follow_symlinks=False):
        return Found("/".join(names), seen.st_mtime_ns, entry.is_symlink())
    return None
