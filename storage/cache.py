"""A least recently used cache, limited by the sum of its values' sizes."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Cache(Generic[K, V]):
    """Values by key whose sizes add up to `max_size` at most."""

    def __init__(self, max_size: int, size_of: Callable[[V], int] = lambda _: 1) -> None:
        self.max_size = max_size
        self.size = 0
        self._size_of = size_of
        self._values: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        if key in self._values:
            self._values.move_to_end(key)
        return self._values.get(key)

    def put(self, key: K, value: V) -> None:
        self.evict(key)
        self._values[key] = value
        self.size += self._size_of(value)
        while self.size > self.max_size:
            self.evict(next(iter(self._values)))

    def evict(self, key: K) -> None:
        if key in self._values:
            self.size -= self._size_of(self._values.pop(key))
