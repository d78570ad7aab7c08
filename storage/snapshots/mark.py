"""Which snapshot a folder on this machine was last seen to be, kept beside the folder.

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

from storage.errors import Held, StoreRefused

PAUSE = 0.02
PATIENCE = 30.0
"""Seconds that another process may be busy with the folder: one that is frozen never lets go."""

BOOT = Path("/proc/sys/kernel/random/boot_id")

Seen: TypeAlias = dict[str, tuple[int, int]]
"""Inode and ctime (ns) of files that cannot change again without a new ctime."""


@dataclass(frozen=True)
class Mark:
    """`root` is the inode of the folder itself."""

    at: str | None = None
    root: int = 0
    seen: Seen = field(default_factory=dict)


def at(folder: Path) -> str | None:
    """The key of the snapshot that the folder was restored from or last taken as, if it is known.

    It says nothing of what was changed in the folder since then.
    """
    return read_mark(folder.resolve()).at


def read_mark(folder: Path) -> Mark:
    """What is known of the folder; nothing where it is not the one that was marked."""
    try:
        told = json.loads(_beside(folder, "json").read_bytes())
        inode = folder.stat().st_ino
        if (told["boot"], told["root"]) != (_boot(), inode):
            return Mark()
        return Mark(told["at"], inode, {path: tuple(one) for path, one in told["seen"].items()})
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return Mark()


def write_mark(folder: Path, mark: Mark) -> None:
    draft = _beside(folder, f"{uuid4().hex}.tmp")
    told = {"at": mark.at, "boot": _boot(), "root": mark.root, "seen": mark.seen}
    try:
        draft.write_text(json.dumps(told))
        draft.replace(_beside(folder, "json"))
    finally:
        draft.unlink(missing_ok=True)


def remove_mark(folder: Path) -> None:
    _beside(folder, "json").unlink(missing_ok=True)


def aside(folder: Path) -> Path:
    return _beside(folder, "aside")


def tick(folder: Path) -> int:
    """The time by the clock of the file system: what is changed from now on has no earlier ctime.

    Another clock may be ahead of it by some milliseconds, or wrong.
    """
    clock = _beside(folder, f"{uuid4().hex}.tmp")
    try:
        clock.write_bytes(b"")
        return clock.stat().st_ctime_ns
    finally:
        clock.unlink(missing_ok=True)


@asynccontextmanager
async def locked(folder: Path) -> AsyncIterator[None]:
    """One at a time, whatever process it is in; a process that dies lets go."""
    _make_private(_beside(folder, "lock").parent)
    descriptor = os.open(_beside(folder, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        await hold(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


async def hold(descriptor: int, folder: Path) -> None:
    """Keep others from the folder, until the descriptor is closed. Raises Held."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not _held(descriptor):  # noqa: ASYNC110 - no event comes from another process
                await asyncio.sleep(PAUSE)
    except TimeoutError:
        raise Held(
            f"Another process has been at work on {folder} for {PATIENCE:g} s: where it is frozen, "
            "its operator ends it."
        ) from None


def _make_private(place: Path) -> None:
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    if place.is_symlink() or place.stat().st_uid != os.geteuid():
        raise StoreRefused(f"{place} is another's: remove it, or let the workspace lie elsewhere.")


def _held(descriptor: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _beside(folder: Path, kind: str) -> Path:
    return folder.parent / ".snapshots" / f"{folder.name}.{kind}"


def _boot() -> str:
    try:
        return BOOT.read_text().strip()
    except OSError:  # not a Linux machine
        return ""
