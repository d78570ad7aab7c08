"""Stores that must not be trusted with a log."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from storage.errors import UnsafeStore
from storage.probe import TRUSTED, probe, probe_again
from storage.store import Store
from tests.storage.faulty import FaultyStore, fate
from tests.storage.memory import MemoryStore


async def test_every_store_of_ours_passes_and_keeps_nothing_in_anybodys_way(store: Store) -> None:
    await probe(store)
    assert all(key.startswith(".probe/") for key in await store.list(""))


class Unconditional(MemoryStore):
    """Ignores the condition, as servers do that do not know it."""

    async def create(self, key: str, body: bytes) -> bool:
        await self.replace(key, body)
        return True


class LooksFirst(MemoryStore):
    """Looks whether the key is taken, and then writes, as if nobody else could in between."""

    async def create(self, key: str, body: bytes) -> bool:
        taken = await self.read(key) is not None
        await asyncio.sleep(0)
        if not taken:
            await self.replace(key, body)
        return not taken


class SaysItRefused(MemoryStore):
    """Answers that the key is taken, and writes all the same."""

    async def create(self, key: str, body: bytes) -> bool:
        created = await super().create(key, body)
        await self.replace(key, body)
        return created


class Lenient(MemoryStore):
    """Keeps the first object, and tells everybody that it is theirs."""

    async def create(self, key: str, body: bytes) -> bool:
        await super().create(key, body)
        return True


class Translating(MemoryStore):
    """Takes every object for text."""

    async def create(self, key: str, body: bytes) -> bool:
        return await super().create(key, body.replace(b"\r", b""))


class Behind(MemoryStore):
    """Shows what was written only at the second look."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    async def read(self, key: str) -> bytes | None:
        found = await super().read(key)
        if found is None or key in self.seen:
            return found
        self.seen.add(key)
        return None


class Short(MemoryStore):
    """Lists one object less than there are."""

    async def list(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        return (await super().list(prefix, after, limit))[:-1]


@pytest.mark.parametrize(
    ("store", "said"),
    [
        (Unconditional(), "overwrote the object"),
        (LooksFirst(), "of 32 writers of one key"),
        (SaysItRefused(), "overwrote the object"),
        (Lenient(), "was not refused"),
        (Translating(), "other bytes than were written"),
        (Behind(), "cannot be read"),
        (Short(), "is not listed"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_a_store_that_would_lose_events_is_refused(store: Store, said: str) -> None:
    with pytest.raises(UnsafeStore, match=f"^This store cannot keep a log: .*{said}"):
        await probe(FaultyStore(store, fate(b"")))


class Unheard(MemoryStore):
    """Loses the answer to every write: whoever asks again finds the key taken."""

    async def create(self, key: str, body: bytes) -> bool:
        await super().create(key, body)
        return False


async def test_lost_answers_are_no_reason_to_refuse_a_store() -> None:
    await probe(Unheard())


class Counting(MemoryStore):
    """Tells how often it was written to."""

    writes = 0

    async def create(self, key: str, body: bytes) -> bool:
        self.writes += 1
        return await super().create(key, body)


async def test_a_store_that_has_passed_runs_its_races_once_a_day(tmp_path: Path) -> None:
    async def writes(name: str) -> int:
        store = Counting()
        await probe_again(store, name, tmp_path / "probed")
        return store.writes

    whole, short = await writes("one"), await writes("one")
    assert whole > 600 > 10 > short
    assert await writes("another") == whole
    for passed in (tmp_path / "probed").iterdir():
        os.utime(passed, (0, time.time() - TRUSTED - 1))
    assert await writes("one") == whole


async def test_a_store_that_fails_is_not_remembered_and_fails_the_short_probe_too(
    tmp_path: Path,
) -> None:
    for _ in range(2):
        with pytest.raises(UnsafeStore):
            await probe_again(LooksFirst(), "one", tmp_path / "probed")
    with pytest.raises(UnsafeStore):
        await probe(Unconditional(), races=False)
