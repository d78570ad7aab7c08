"""Access to folders name by name from an open one, so that no symlink is ever followed."""

import asyncio
import os
import shutil
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW

PARALLEL_PACKS = 4
"""Packs that are moved at the same time; each has up to 8 MiB."""

P = ParamSpec("P")
Item = TypeVar("Item")
T = TypeVar("T")


class FolderWalker:
    """Keeps the last folder and those above it open: the next path is often in one of them."""

    def __init__(self, root: int) -> None:
        self._open = [root]
        self._names: list[str] = []

    def open_parent(self, path: str) -> tuple[int, str]:
        """Return a descriptor of the folder of `path`, good until the next call, and the name.

        Raises OSError, also where a part of the path is no folder.
        """
        *folders, name = path.split("/")
        while self._names != folders[: len(self._names)]:
            self._close_last()
        for folder in folders[len(self._names) :]:
            self._open.append(os.open(folder, FOLDER_FLAGS, dir_fd=self._open[-1]))
            self._names.append(folder)
        return self._open[-1], name

    def close(self) -> None:
        while self._names:
            self._close_last()

    def _close_last(self) -> None:
        self._names.pop()
        os.close(self._open.pop())


@contextmanager
def open_path(path: str | Path, flags: int, parent: int | None = None) -> Iterator[int]:
    descriptor = os.open(path, flags, 0o600, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_folder(root: Path) -> AbstractContextManager[int]:
    return open_path(root, os.O_RDONLY | os.O_DIRECTORY)


def remove_tree(folder: Path, *, ignore_errors: bool = False) -> None:
    """Remove the folder, following no link."""
    if os.geteuid() != 0:
        for parent, names, _ in os.walk(folder):
            for name in names:
                make_writable(Path(parent, name))
    shutil.rmtree(folder, ignore_errors=ignore_errors)


def make_writable(folder: Path) -> None:
    """Make the folder writable for anybody but root, who needs no permission."""
    if os.geteuid() != 0 and not folder.is_symlink():
        folder.chmod(folder.stat().st_mode & 0o7777 | 0o700)


async def to_thread_shielded(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `work` in a thread as `asyncio.to_thread` does; a cancelled caller waits for its end."""
    task = asyncio.create_task(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                continue
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not warn
        raise


async def run_ahead(
    work: Callable[[Item], Coroutine[Any, Any, T]], items: Iterator[Item]
) -> AsyncGenerator[T, None]:
    """Yield `work` of each item, in order, while later ones run and a thread makes more items."""
    tasks: deque[asyncio.Task[T]] = deque()
    try:
        while (item := await to_thread_shielded(next, items, None)) is not None:
            tasks.append(asyncio.create_task(work(item)))
            if len(tasks) >= PARALLEL_PACKS:
                yield await tasks.popleft()
        while tasks:
            yield await tasks.popleft()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
