"""A probe that tests whether a store keeps the guarantees a log needs."""

import asyncio
import hashlib
import time
from pathlib import Path
from uuid import uuid4

from perdure.storage.errors import UnsafeStore
from perdure.storage.store import Store

RACES = 20
WRITERS = 32
EVERY_BYTE = bytes(range(256)) * 256

TRUST_SECONDS = 24 * 3600.0
"""Seconds for which a store that passed the races need not run them again on this machine."""


async def probe(store: Store, *, races: bool = True) -> None:
    """Raise UnsafeStore, with a sentence that names what failed, if a log could lose events there.

    A server without conditional writes accepts them all, and events would overwrite events. The
    `races` are 640 writes; without them the probe is a dozen requests. Leaves a few small objects
    under `.probe/`.
    """
    prefix = f".probe/{uuid4()}/"
    # A listing first: SeaweedFS creates a missing bucket on a write.
    _demand(await store.list(prefix) == [], "it lists objects that were never written")
    await _check_reading(store, prefix)
    await _check_creating(store, prefix)
    if races:
        # All at once, for a server may make the losers of a race wait: SeaweedFS does, for 1 s.
        keys = [f"{prefix}race-{number:02d}" for number in range(RACES)]
        await asyncio.gather(*(_check_race(store, key) for key in keys))


async def probe_again(store: Store, name: str, folder: Path) -> None:
    """Probe, with the races once a day: `folder` remembers that the store called `name` passed.

    A worker that replaces a lost one should start soon.
    """
    stamp = folder / hashlib.sha256(name.encode()).hexdigest()[:16]
    races = not stamp.exists() or time.time() - stamp.stat().st_mtime >= TRUST_SECONDS
    await probe(store, races=races)
    if races:
        _touch(stamp)


def _touch(stamp: Path) -> None:
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.touch()


async def _check_reading(store: Store, prefix: str) -> None:
    key = f"{prefix}bytes"
    _demand(await store.read(key) is None, "it reads an object that was never written")
    # If the answer was lost, the store's own retry was refused: a read tells.
    created = await store.create(key, EVERY_BYTE)
    read = await store.read(key)
    _demand(created or read is not None, "it refuses to create an object on a free key")
    _demand(read is not None, "an object that was just written cannot be read")
    _demand(read == EVERY_BYTE, "an object is read back with other bytes than were written")
    _demand(await store.list(prefix) == [key], "an object that was just written is not listed")


async def _check_creating(store: Store, prefix: str) -> None:
    key = f"{prefix}taken"
    await store.create(key, b"first")
    created = await store.create(key, b"second")
    unchanged = await store.read(key) == b"first"
    _demand(unchanged, "a create on a taken key overwrote the object (it ignores If-None-Match)")
    _demand(not created, "a create on a taken key was not refused")


async def _check_race(store: Store, key: str) -> None:
    bodies = [f"writer {number}".encode() for number in range(WRITERS)]
    wins = await asyncio.gather(*(store.create(key, body) for body in bodies))
    winners = [body for body, is_winner in zip(bodies, wins, strict=True) if is_winner]
    failure = f"of {WRITERS} writers of one key {len(winners)} were told that they wrote it"
    _demand(len(winners) <= 1, failure)
    # There is no winner if its answer was lost.
    is_winner = await store.read(key) in (winners or bodies)
    _demand(is_winner, "the writer that won is not the one that is read")


def _demand(condition: bool, failure: str) -> None:
    if not condition:
        raise UnsafeStore(
            f"This store cannot keep a log: {failure}. Use S3, SeaweedFS, or another store with "
            "conditional writes."
        )
