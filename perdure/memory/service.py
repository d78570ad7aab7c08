"""The memories of all users of a store: each user's apart from all others."""

from collections.abc import Callable
from functools import cached_property, lru_cache

from perdure.errors import Invalid
from perdure.memory.embedding import Embedder
from perdure.memory.lance import LanceIndex
from perdure.memory.records import MemoryRecords
from perdure.memory.user_memory import UserMemory
from perdure.storage import keys
from perdure.storage.open import open_store
from perdure.storage.store import Store

MAX_OPEN_USERS = 256
"""Users whose index is kept open in a process."""


class MemoryService:
    """The memories in a store.

    Their index is in the same store, or at `index_url`, which all processes must reach: on one
    machine, `file:///folder`. `embedder` makes vectors, in all processes by the same model.
    """

    def __init__(
        self, store: Store, embedder: Embedder | None = None, index_url: str | None = None
    ) -> None:
        self.store = store
        self.embedder = embedder
        self.index_url = index_url

    def of_user(self, user_id: str) -> UserMemory:
        """Return the memories of a user. Raises ValueError for an invalid id."""
        return self._open(user_id)

    @cached_property
    def _open(self) -> Callable[[str], UserMemory]:
        return lru_cache(MAX_OPEN_USERS)(self._open_user)

    def _open_user(self, user_id: str) -> UserMemory:
        model = self.embedder.name if self.embedder else None
        index = LanceIndex(lambda: self._index_store, keys.memory_index_prefix(user_id), model)
        return UserMemory(MemoryRecords(self.store, user_id), index, self.embedder)

    @cached_property
    def _index_store(self) -> Store:
        if self.index_url is None:
            return self.store
        try:
            return open_store(self.index_url)
        except ValueError as error:
            raise Invalid(str(error), "It is `index` of the table [memory].") from error
