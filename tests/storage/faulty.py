"""A store that injects faults between a writer and another store."""

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from perdure.storage.errors import StoreUnavailable
from perdure.storage.store import Store, Version


class Fault(Enum):
    NONE = 0
    LOST = 1
    """The request never arrives."""
    UNANSWERED = 2
    """The object is written, the answer is lost, the writer gives up."""
    ANSWERED_TWICE = 3
    """The object is written, the answer is lost, and the second try finds the key taken."""


Choose: TypeAlias = Callable[[int], int]
"""A function that picks a number below its argument; 0 means no fault."""


def choices_from(numbers: bytes) -> Choose:
    """Return the numbers in turn, then always 0."""
    left = iter(numbers)
    return lambda choices: next(left, 0) % choices


class FaultyStore:
    """Another store, behind a network that delays and loses as `fate` picks."""

    def __init__(self, store: Store, fate: Choose) -> None:
        self.store = store
        self.fate = fate

    async def create(self, key: str, body: bytes) -> bool:
        await self._delay()
        fault = Fault(self.fate(len(Fault)))
        if fault is Fault.LOST:
            raise StoreUnavailable("the request was lost")
        created = await self.store.create(key, body)
        await self._delay()
        if fault is Fault.UNANSWERED:
            raise StoreUnavailable("the answer was lost")
        return created and fault is Fault.NONE

    async def read(self, key: str) -> bytes | None:
        await self._delay()
        return await self.store.read(key)

    async def replace(self, key: str, body: bytes) -> None:
        await self._delay()
        await self.store.replace(key, body)

    async def read_version(self, key: str) -> Version | None:
        await self._delay()
        return await self.store.read_version(key)

    async def replace_version(self, key: str, body: bytes, tag: str) -> bool:
        await self._delay()
        fault = Fault(self.fate(len(Fault)))
        if fault is Fault.LOST:
            raise StoreUnavailable("the request was lost")
        replaced = await self.store.replace_version(key, body, tag)
        await self._delay()
        if fault is Fault.UNANSWERED:
            raise StoreUnavailable("the answer was lost")
        return replaced and fault is Fault.NONE

    async def delete(self, key: str) -> None:
        await self._delay()
        await self.store.delete(key)

    async def folders(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        await self._delay()
        return await self.store.folders(prefix, after, limit)

    async def close(self) -> None:
        await self.store.close()

    async def list(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        await self._delay()
        return await self.store.list(prefix, after, limit)

    async def _delay(self) -> None:
        for _ in range(self.fate(4)):
            await asyncio.sleep(0)
