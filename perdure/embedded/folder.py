"""The folder of a stack: private files, which other users cannot read, and a lock.

The kernel releases the lock when the process that has it dies.
"""

import asyncio
import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import IO

from perdure.embedded.errors import FolderTaken, FolderUnusable

LOCK = "stack.lock"

# `is_locked` holds the lock for a moment, which must not make a start fail.
LOCK_TIMEOUT = 0.5


def make_folder(folder: Path) -> Path:
    """Create `folder` if it is missing, and return its absolute path. Raises FolderUnusable."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise FolderUnusable(f"Nothing can be kept in {folder}: {error}.") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FolderUnusable(f"Nothing can be kept in {folder}: it must be writable for you.")
    return folder.absolute()


def write_private(path: Path, text: str) -> None:
    """Replace the content of `path` atomically."""
    draft = path.with_name(f"{path.name}.draft")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    draft.rename(path)


async def lock_folder(folder: Path) -> IO[bytes]:
    """Lock the folder until the returned file is closed. Raises FolderTaken."""
    file = _open(folder)
    try:
        async with asyncio.timeout(LOCK_TIMEOUT):
            while not _try_lock(file, fcntl.LOCK_EX):  # noqa: ASYNC110 - the kernel tells nobody
                await asyncio.sleep(LOCK_TIMEOUT / 10)
    except TimeoutError as error:
        file.close()
        message = f"Another perdure stack runs in {folder} (pid {read_holder(folder)})"
        hint = "use it, stop it, or take another folder with `perdure dev --data FOLDER`"
        raise FolderTaken(f"{message}: {hint}.") from error
    with suppress(OSError):  # a full disk; the pid only helps people
        file.truncate(0)
        file.write(str(os.getpid()).encode())
    return file


def is_locked(folder: Path) -> bool:
    """Tell whether a stack has the lock of `folder`."""
    if not folder.exists():
        return False
    with _open(folder) as file:
        return not _try_lock(file, fcntl.LOCK_SH)


def read_holder(folder: Path) -> str:
    """Read the pid of the process that has the lock; `unknown` if it could not write that."""
    return (folder / LOCK).read_text() or "unknown"


def _open(folder: Path) -> IO[bytes]:
    return (folder / LOCK).open("ab", buffering=0)


def _try_lock(file: IO[bytes], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
