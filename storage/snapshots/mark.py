"""The mark of a workspace: which snapshot the folder on this machine was last known to equal.

{parent}/.snapshots/{name}.json     the mark
{parent}/.snapshots/{name}.lock     held while a snapshot is taken or restored
{parent}/.snapshots/{name}.aside/   what is being restored, and what it replaces

A crash of this machine may lose what was written to the folder: a mark of another boot is void.
"""

import asyncio
import fcntl
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias
from uuid import uuid4

from perdure.storage.errors import StoreRefused, WorkspaceBusy
from perdure.storage.snapshots.folders import open_path

LOCK_POLL_INTERVAL = 0.02
LOCK_TIMEOUT = 30.0
"""Seconds of waiting for another process's lock: a frozen one never releases it."""

BOOT_ID_PATH = Path("/proc/sys/kernel/random/boot_id")

FileStamps: TypeAlias = dict[str, tuple[int, int]]
"""Inode and ctime (ns) of files that cannot change again without a new ctime."""


@dataclass(frozen=True)
class Mark:
    """The snapshot at `key`, the stamps of its files, and `root`, the folder's own inode."""

    key: str | None = None
    root: int = 0
    stamps: FileStamps = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> "Mark":
        """Read the mark of the folder; an empty one if another folder was marked."""
        try:
            fields = json.loads(sidecar(folder, "json").read_bytes())
            inode = folder.stat().st_ino
            if (fields["boot"], fields["root"]) == (_boot_id(), inode):
                stamps = {path: tuple(stamp) for path, stamp in fields["seen"].items()}
                return cls(fields["at"], inode, stamps)
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            pass  # it was lost, and only saves work
        return cls()

    def write(self, folder: Path) -> None:
        draft = sidecar(folder, f"{uuid4().hex}.tmp")
        fields = {"at": self.key, "boot": _boot_id(), "root": self.root, "seen": self.stamps}
        try:
            draft.write_text(json.dumps(fields))
            draft.replace(sidecar(folder, "json"))
        finally:
            draft.unlink(missing_ok=True)


def last_snapshot_key(folder: Path) -> str | None:
    """Return the key of the snapshot that the folder was last restored from or taken as, if known.

    The folder may have been changed since then.
    """
    return Mark.read(folder.resolve()).key


def file_clock(folder: Path) -> int:
    """Return the time of the file system's clock: no later change has an earlier ctime.

    Another clock may be ahead of it by some milliseconds, or wrong.
    """
    clock = sidecar(folder, f"{uuid4().hex}.tmp")
    try:
        clock.write_bytes(b"")
        return clock.stat().st_ctime_ns
    finally:
        clock.unlink(missing_ok=True)


@asynccontextmanager
async def folder_lock(folder: Path) -> AsyncIterator[None]:
    """Lock the folder for one process at a time; a process that dies releases it."""
    lock = sidecar(folder, "lock")
    lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if lock.parent.is_symlink() or lock.parent.stat().st_uid != os.geteuid():
        raise StoreRefused(
            f"{lock.parent} is another's: remove it, or let the workspace lie elsewhere."
        )
    with open_path(lock, os.O_RDWR | os.O_CREAT) as descriptor:
        await acquire_lock(descriptor, folder)
        yield


async def acquire_lock(descriptor: int, folder: Path) -> None:
    """Acquire the lock, held until the descriptor is closed. Raises WorkspaceBusy."""
    try:
        async with asyncio.timeout(LOCK_TIMEOUT):
            while True:
                with suppress(BlockingIOError):
                    return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                await asyncio.sleep(LOCK_POLL_INTERVAL)
    except TimeoutError:
        raise WorkspaceBusy(
            f"Another process has been at work on {folder} for {LOCK_TIMEOUT:g} s: where it is "
            "frozen, its operator ends it."
        ) from None


def sidecar(folder: Path, kind: str) -> Path:
    return folder.parent / ".snapshots" / f"{folder.name}.{kind}"


def _boot_id() -> str:
    try:
        return BOOT_ID_PATH.read_text().strip()
    except OSError:  # not a Linux machine
        return ""
