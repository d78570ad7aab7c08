"""A store whose worker dies after some calls."""

from perdure.storage.errors import StoreUnavailable
from perdure.storage.store import Store
from tests.storage.faulty import FaultyStore


class StoppingStore(FaultyStore):
    """Another store that fails after `calls` reads and creates."""

    def __init__(self, store: Store, calls: int) -> None:
        super().__init__(store, lambda _: 0)
        self.calls = calls

    async def create(self, key: str, body: bytes) -> bool:
        self._count()
        return await super().create(key, body)

    async def read(self, key: str) -> bytes | None:
        self._count()
        return await super().read(key)

    def _count(self) -> None:
        self.calls -= 1
        if self.calls < 0:
            raise StoreUnavailable("the worker is gone")
