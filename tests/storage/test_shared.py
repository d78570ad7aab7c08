"""What is shared with a user: the marks find it, and the grants alone show it."""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from perdure.client.ids import new_conversation_id
from perdure.storage.conversations import hide_conversation
from perdure.storage.files import FileStore
from perdure.storage.grants import Grant, Shareable, delete_grant, read_access, save_grant
from perdure.storage.shared import Shared, list_marked, list_shared


class Crashed(Exception):
    """The process has ended between two requests."""


class CrashingStore(FileStore):
    """A store whose process ends after some more requests; other tasks come in between."""

    left: float = float("inf")

    async def _count(self) -> None:
        if self.left == 0:
            raise Crashed
        self.left -= 1
        await asyncio.sleep(0)

    async def create(self, key: str, body: bytes) -> bool:
        await self._count()
        return await super().create(key, body)

    async def replace(self, key: str, body: bytes) -> None:
        await self._count()
        await super().replace(key, body)

    async def delete(self, key: str) -> None:
        await self._count()
        await super().delete(key)


@pytest.fixture
def store(tmp_path: Path) -> CrashingStore:
    return CrashingStore(tmp_path)


def share(kind: str = "conversation", owner: str = "anna", name: str = "") -> Shareable:
    return Shareable(kind, owner, name or new_conversation_id())  # type: ignore[arg-type]


def read_by_ben() -> Grant:
    return Grant(user_id="ben", access="read")


async def test_conversations_are_listed_by_age_and_batches_by_name(store: CrashingStore) -> None:
    first = share(owner="carl", name="01900000-0000-7000-8000-000000000000")
    second = share(owner="anna")
    for of in (second, first, share("batch", "carl", "sums"), share("batch", "anna", "z")):
        await save_grant(store, of, read_by_ben())
    await save_grant(store, second, Grant(user_id="ben", access="write"))
    assert await list_shared(store, "ben", "conversation", 20) == [
        Shared(owner="anna", id=second.id, access="write"),
        Shared(owner="carl", id=first.id, access="read"),
    ]
    assert [it.id for it in await list_shared(store, "ben", "conversation", 1)] == [second.id]
    assert [it.id for it in await list_shared(store, "ben", "batch", 20)] == ["sums", "z"]
    assert await list_shared(store, "anna", "conversation", 20) == []
    assert await list_shared(store, "be", "conversation", 20) == []


async def test_what_is_revoked_hidden_or_damaged_is_not_listed(store: CrashingStore) -> None:
    revoked, hidden, damaged, kept = (share() for _ in range(4))
    for of in (revoked, hidden, damaged, kept):
        await save_grant(store, of, read_by_ben())
    await delete_grant(store, revoked, "ben")
    await delete_grant(store, revoked, "ben")
    await hide_conversation(store, "anna", hidden.id)
    await store.replace(damaged.grant_key("ben"), b"{")
    assert [it.id for it in await list_shared(store, "ben", "conversation", 20)] == [kept.id]
    await save_grant(store, revoked, read_by_ben())
    listed = [it.id for it in await list_shared(store, "ben", "conversation", 20)]
    assert sorted(listed) == sorted([kept.id, revoked.id])


async def test_a_mark_alone_admits_nobody_and_lists_nothing(store: CrashingStore) -> None:
    of = share()
    await store.create(of.mark_key("ben"), b"")
    assert await list_marked(store, "ben", "conversation") == [of]
    assert await list_shared(store, "ben", "conversation", 20) == []
    assert await read_access(store, of, "ben") is None


@pytest.mark.parametrize("left", range(4))
async def test_after_a_crash_anywhere_what_admits_is_listed(
    store: CrashingStore, left: int
) -> None:
    of = share()
    store.left = left
    try:
        await save_grant(store, of, read_by_ben())
        await delete_grant(store, of, "ben")
        await save_grant(store, of, read_by_ben())
    except Crashed:
        pass
    store.left = float("inf")
    await check(store, [of])


@pytest.mark.parametrize("seed", range(20))
async def test_grants_and_revocations_that_meet_leave_list_and_access_agreed(
    store: CrashingStore, seed: int
) -> None:
    chance, of = random.Random(seed), [share() for _ in range(3)]

    async def act() -> None:
        for _ in range(10):
            one = chance.choice(of)
            if chance.random() < 0.5:
                await save_grant(store, one, read_by_ben())
            else:
                await delete_grant(store, one, "ben")
            await asyncio.sleep(0)

    store.left = chance.randrange(20, 60)
    await asyncio.gather(*(act() for _ in range(4)), return_exceptions=True)
    store.left = float("inf")
    await check(store, of)
    await save_grant(store, of[0], read_by_ben())
    assert of[0].id in {it.id for it in await list_shared(store, "ben", "conversation", 9)}


async def check(store: CrashingStore, shared: Sequence[Shareable]) -> None:
    """Check that exactly what admits is listed."""
    admitted = {of.id for of in shared if await read_access(store, of, "ben")}
    assert {it.id for it in await list_shared(store, "ben", "conversation", 9)} == admitted
