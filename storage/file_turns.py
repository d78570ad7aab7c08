"""Turns among processes that replace files of one folder by their versions.

A lock gives the turns. Its holder may stand still for ever (a process that is stopped, a machine
that sleeps), so nobody waits for it for long: whoever comes next removes the draft of the one
before, which can then not take its name any more. So one writer wins also where two go at once.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from io import BufferedWriter
from pathlib import Path

LOCKS = 16

MAX_WAIT = 1.0
"""Seconds to wait for a turn: a flush to a busy disk takes less."""

POLL_INTERVAL = 0.002


@contextlib.contextmanager
def take_turn(folder: Path, name: str) -> Iterator[None]:
    """Wait for the turn to replace the file whose drafts in `folder` begin with a hash, `name`."""
    path = folder / f"turn-{int(name, 16) % LOCKS}.lock"
    with path.open("ab") as file:
        deadline = time.monotonic() + MAX_WAIT
        while not _try_lock(file):
            if time.monotonic() > deadline:
                _remove_lock(file, path)  # for those who come next: they need not wait so long
                break
            time.sleep(POLL_INTERVAL)
        yield  # the lock is held until the file is closed


def _remove_lock(file: BufferedWriter, path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_ino == os.fstat(file.fileno()).st_ino:
            path.unlink()


def remove_other_drafts(draft: Path, name: str) -> None:
    """Remove the drafts that others have of the same file."""
    for other in draft.parent.glob(f"{name}.*"):
        if other != draft:
            other.unlink(missing_ok=True)


def _try_lock(file: BufferedWriter) -> bool:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
