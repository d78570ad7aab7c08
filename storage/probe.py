"""Whether a store keeps what a log is built on, asked of the store itself."""

import asyncio
from uuid import uuid4

from storage.errors import UnsafeStore
from storage.store import Store

KEYS = 20
WRITERS = 32
EVERY_BYTE = bytes(range(256)) * 256


async def probe(store: Store) -> None:
    """Raises UnsafeStore, with a sentence that names what failed, where the store is no place for
    a log: a server without conditional writes takes them all, and events would overwrite events.

    Leaves a few small objects under `.probe/`.
    """
    at = f".probe/{uuid4()}/"
    # First of all a listing: SeaweedFS makes a bucket that is missing when it is written to.
    _demand(await store.list(at) == [], "it lists objects that were never written")
    await _check_reading(store, at)
    await _check_creating(store, at)
    # All at once, for a server may make the losers of a race wait: SeaweedFS does, for a second.
    await asyncio.gather(*(_check_race(store, f"{at}race-{key:02d}") for key in range(KEYS)))


async def _check_reading(store: Store, at: str) -> None:
    key = f"{at}bytes"
    _demand(await store.read(key) is None, "it reads an object that was never written")
    _demand(await store.create(key, EVERY_BYTE), "it refuses to create an object on a free key")
    read = await store.read(key)
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
        len(winners) == 1,
        f"of {WRITERS} writers of one key {len(winners)} were told that they wrote it",
    )
    _demand(await store.read(key) == winners[0], "the writer that won is not the one that is read")


def _demand(kept: bool, otherwise: str) -> None:
    if not kept:
        raise UnsafeStore(
            f"This store cannot keep a log: {otherwise}. Use S3, SeaweedFS, or another store with "
            "conditional writes."
        )
