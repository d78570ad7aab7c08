"""One stack in one folder: a lock that the kernel takes back from a process that dies."""

import asyncio
import fcntl
from pathlib import Path
from typing import IO

from embedded.errors import FolderTaken

# `is_taken` holds the lock for a moment; that must not turn a start away.
PATIENCE = 0.5


class FolderLock:
    """The sole use of a folder until `release`."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    @classmethod
    async def take(cls, folder: Path) -> "FolderLock":
        """Takes it; raises FolderTaken where another process, or another stack of ours, has it."""
        file = _open(folder)
        try:
            async with asyncio.timeout(PATIENCE):
                while not _locked(file, fcntl.LOCK_EX):  # noqa: ASYNC110 - the kernel tells nobody
                    await asyncio.sleep(PATIENCE / 10)
        except TimeoutError as error:
            file.close()
            raise FolderTaken(
                f"Another perdure stack runs in {folder}: use it, stop it, or take another folder."
            ) from error
        return cls(file)

    def release(self) -> None:
        """Gives it back."""
        self._file.close()


def is_taken(folder: Path) -> bool:
    """Whether a stack has `folder`."""
    if not folder.exists():
        return False
    with _open(folder) as file:
        return not _locked(file, fcntl.LOCK_SH)


def _open(folder: Path) -> IO[bytes]:
    return (folder / "stack.lock").open("ab")


def _locked(file: IO[bytes], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
