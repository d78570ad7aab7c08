"""Folders reached name by name from one that is open, so that no symlink is ever followed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class Folders:
    """The one used last stays open, and those above it, for the next path is often next door."""

    def __init__(self, root: int) -> None:
        self._open = [root]
        self._names: list[str] = []

    def of(self, path: str) -> tuple[int, str]:
        """A descriptor of the folder that `path` is in, good until the next call; and its name.

        Raises OSError, also where one of the folders is none, or no longer.
        """
        *folders, name = path.split("/")
        while self._names != folders[: len(self._names)]:
            self._leave()
        for folder in folders[len(self._names) :]:
            self._open.append(os.open(folder, OPEN, dir_fd=self._open[-1]))
            self._names.append(folder)
        return self._open[-1], name

    def close(self) -> None:
        while self._names:
            self._leave()

    def _leave(self) -> None:
        self._names.pop()
        os.close(self._open.pop())


@contextmanager
def opened(root: Path) -> Iterator[int]:
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def folders(root: int) -> Iterator[Folders]:
    found = Folders(root)
    try:
        yield found
    finally:
        found.close()
