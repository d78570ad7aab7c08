"""The probe refuses stores that could lose a log."""

import asyncio
import os
import time
from collections import Counter
from pathlib import Path

import pytest

from perdure.storage.errors import UnsafeStore
from perdure.storage.probe import TRUST_SECONDS, probe, probe_again
from perdure.storage.store import Store
from tests.storage.faulty import FaultyStore, choices_from
from tests.storage.memory import MemoryStore


@pytest.mark.long
async def test_every_store_passes_the_probe_and_lists_no_conversation(store: Store) -> None:
    await probe(store)
    assert all(key.startswith(".probe/") for key in await store.list(""))


class UnconditionalStore(MemoryStore):
    """Ignores the condition of a create, as servers without conditional writes do."""

    async def create(self, key: str, body: bytes) -> bool:
        await self.replace(key, body)
        return True


class CheckThenWriteStore(MemoryStore):
    """Checks the key and then writes, which is a race."""

    async def create(self, key: str, body: bytes) -> bool:
        taken = await self.read(key) is not None
        await asyncio.sleep(0)
        if not taken:
            await self.replace(key, body)
        return not taken


class OverwritingStore(MemoryStore):
    """Answers that the key is taken, and writes all the same."""

    async def create(self, key: str, body: bytes) -> bool:
        created = await super().create(key, body)
        await self.replace(key, body)
        return created


class EveryoneWinsStore(MemoryStore):
    """Keeps the first object, and tells every writer that it won."""

    async def create(self, key: str, body: bytes) -> bool:
        await super().create(key, body)
        return True


class TwoWinnersStore(MemoryStore):
    """Keeps the first object of a race, and tells its first two writers that they won."""

    def __init__(self) -> None:
        super().__init__()
        self.tries: Counter[str] = Counter()

    async def create(self, key: str, body: bytes) -> bool:
        created = await super().create(key, body)
        self.tries[key] += 1
        return created or ("race" in key and self.tries[key] == 2)


class TextStore(MemoryStore):
    """Treats every object as text."""

    async def create(self, key: str, body: bytes) -> bool:
        return await super().create(key, body.replace(b"\r", b""))


class StaleStore(MemoryStore):
    """Returns a written object only from the second read on."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    async def read(self, key: str) -> bytes | None:
        body = await super().read(key)
        if body is None or key in self.seen:
            return body
        self.seen.add(key)
        return None


class IncompleteListStore(MemoryStore):
    """Lists one object less than there are."""

    async def list(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        return (await super().list(prefix, after, limit))[:-1]


@pytest.mark.parametrize(
    ("store", "complaint"),
    [
        (UnconditionalStore(), "overwrote the object"),
        (CheckThenWriteStore(), "of 32 writers of one key"),
        (OverwritingStore(), "overwrote the object"),
        (EveryoneWinsStore(), "was not refused"),
        (TwoWinnersStore(), "of 32 writers of one key 2 were told that they wrote it"),
        (TextStore(), "other bytes than were written"),
        (StaleStore(), "cannot be read"),
        (IncompleteListStore(), "is not listed"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_a_store_that_would_lose_events_is_refused(store: Store, complaint: str) -> None:
    with pytest.raises(UnsafeStore, match=f"^This store cannot keep a log: .*{complaint}"):
        await probe(FaultyStore(store, choices_from(b"")))


class LostAnswersStore(MemoryStore):
    """Loses the answer to every write: a retry finds the key taken."""

    async def create(self, key: str, body: bytes) -> bool:
        await super().create(key, body)
        return False


async def test_lost_answers_are_no_reason_to_refuse_a_store() -> None:
    await probe(LostAnswersStore())


class CountingStore(MemoryStore):
    """Counts its writes."""

    writes = 0

    async def create(self, key: str, body: bytes) -> bool:
        self.writes += 1
        return await super().create(key, body)


async def test_a_store_that_has_passed_runs_its_races_once_a_day(tmp_path: Path) -> None:
    async def writes(name: str) -> int:
        store = CountingStore()
        await probe_again(store, name, tmp_path / "probed")
        return store.writes

    whole, short = await writes("one"), await writes("one")
    assert whole > 600 > 10 > short
    assert await writes("another") == whole
    for passed in (tmp_path / "probed").iterdir():
        os.utime(passed, (0, time.time() - TRUST_SECONDS - 1))
    assert await writes("one") == whole


async def test_a_store_that_fails_is_not_remembered_and_fails_the_short_probe_too(
    tmp_path: Path,
) -> None:
    for _ in range(2):
        with pytest.raises(UnsafeStore):
            await probe_again(CheckThenWriteStore(), "one", tmp_path / "probed")
    with pytest.raises(UnsafeStore):
        await probe(UnconditionalStore(), races=False)
