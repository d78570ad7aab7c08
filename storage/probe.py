"""Whether a store keeps what a log is built on, asked of the store itself."""

import asyncio
import hashlib
import time
from pathlib import Path
from uuid import uuid4

from storage.errors import UnsafeStore
from storage.store import Store

KEYS = 20
WRITERS = 32
EVERY_BYTE = bytes(range(256)) * 256

TRUSTED = 24 * 3600.0
"""Seconds for which a store that won its races need not run them again on this machine."""


async def probe(store: Store, *, races: bool = True) -> None:
    """Raises UnsafeStore, with a sentence that names what failed, where the store is no place for
    a log: a server without conditional writes takes them all, and events would overwrite events.

    The `races` are 640 writes; without them it is a dozen requests. Leaves a few small objects
    under `.probe/`.
    """
    at = f".probe/{uuid4()}/"
    # First of all a listing: SeaweedFS makes a bucket that is missing when it is written to.
    _demand(await store.list(at) == [], "it lists objects that were never written")
    await _check_reading(store, at)
    await _check_creating(store, at)
    if races:
        # All at once, for a server may make the losers of a race wait: SeaweedFS does, for 1 s.
        await asyncio.gather(*(_check_race(store, f"{at}race-{key:02d}") for key in range(KEYS)))


async def probe_again(store: Store, name: str, folder: Path) -> None:
    """`probe`, with the races once a day: `folder` remembers that the store called `name` passed.

    A worker that is started in place of one that was lost should be at work soon.
    """
    passed = folder / hashlib.sha256(name.encode()).hexdigest()[:16]
    races = not _trusted(passed)
    await probe(store, races=races)
    if races:
        _remember(passed)


def _trusted(passed: Path) -> bool:
    return passed.exists() and time.time() - passed.stat().st_mtime < TRUSTED


def _remember(passed: Path) -> None:
    passed.parent.mkdir(parents=True, exist_ok=True)
    passed.touch()


async def _check_reading(store: Store, at: str) -> None:
    key = f"{at}bytes"
    _demand(await store.read(key) is None, "it reads an object that was never written")
    # Where an answer was lost, the store has asked again, and was refused: reading tells.
    created = await store.create(key, EVERY_BYTE)
    read = await store.read(key)
    _demand(created or read is not None, "it refuses to create an object on a free key")
    _demand(read is not None, "an object that was just written cannot be read")
    _demand(read == EVERY_BYTE, "an object is read back with other bytes than were written")
    _demand(await store.list(at) == [key], "an object that was just written is not listed")


async def _check_creating(store: Store, at: str) -> None:
    key = f"{at}taken"
    await store.create(key, b"first")
    created = await store.create(key, b"second")
    kept = await store.read(key) == b"first"
    _demand(kept, "a create on a taken key overwrote the object (it ignores If-None-Match)")
    _demand(not created, "a create on a taken key was not refused")


async def _check_race(store: Store, key: str) -> None:
    bodies = [f"writer {number}".encode() for number in range(WRITERS)]
    wins = await asyncio.gather(*(store.create(key, body) for body in bodies))
    winners = [body for body, won in zip(bodies, wins, strict=True) if won]
    _demand(
        len(winners) <= 1,
        f"of {WRITERS} writers of one key {len(winners)} were told that they wrote it",
    )
    # Nobody is told where the winner's answer was lost.
    won = await store.read(key) in (winners or bodies)
    _demand(won, "the writer that won is not the one that is read")


def _demand(kept: bool, otherwise: str) -> None:
    if not kept:
        raise UnsafeStore(
            f"This store cannot keep a log: {otherwise}. Use S3, SeaweedFS, or another store with "
            "conditional writes."
        )
