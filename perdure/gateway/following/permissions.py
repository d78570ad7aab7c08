"""Whether clients that are attached may still read: checked as long as they are.

What is checked once counts for all clients that depend on it. Before anything is delivered, a check
is a few seconds old at most; a client to which nothing is delivered is checked at a slow pace if
there are many.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from math import inf
from time import monotonic

from perdure.errors import ClientError
from perdure.storage.errors import StoreError

RETRY_INTERVAL = 0.5
"""Seconds between two checks while the store does not answer."""

Check = Callable[[], Awaitable[None]]
"""Raises a ClientError where reading is not permitted any more."""


class Permission:
    """A permission that clients depend on."""

    def __init__(self, check: Check, max_age: float) -> None:
        self._check = check
        self._max_age = max_age
        self._checking = asyncio.Lock()
        self._checked = monotonic()
        self.wakes: list[asyncio.Event] = []
        self.error: ClientError | None = None

    def expire(self) -> None:
        """Have all clients check before they go on."""
        self._checked = -inf
        for wake in self.wakes:
            wake.set()

    @property
    def age(self) -> float:
        return monotonic() - self._checked

    async def ensure(self) -> None:
        """Check unless that was done lately. Raises the error of a permission that is lost.

        Waits as long as the store does not answer.
        """
        async with self._checking:
            while self.error is None and self.age >= self._max_age:
                began = monotonic()
                try:
                    await self._check()
                    self._checked = began
                except StoreError:
                    await asyncio.sleep(RETRY_INTERVAL)
                except ClientError as error:
                    self.error = error
                    for wake in self.wakes:
                        wake.set()
        if self.error is not None:
            raise self.error


class Permissions:
    """The permissions that the clients of a process depend on."""

    def __init__(self, max_age: float, checks_per_second: float) -> None:
        self._max_age = max_age
        self._pause = 1 / checks_per_second
        self._permissions: dict[Hashable, Permission] = {}
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def depend(self, key: Hashable, check: Check, wake: asyncio.Event) -> Iterator[Permission]:
        """Check a permission while inside; `wake` is set when it is lost."""
        permission = self._permissions.get(key)
        if permission is None or permission.error is not None:
            permission = self._permissions[key] = Permission(check, self._max_age)
        permission.wakes.append(wake)
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        try:
            yield permission
        finally:
            permission.wakes.remove(wake)
            if not permission.wakes and self._permissions.get(key) is permission:
                del self._permissions[key]
            if not self._permissions and self._task is not None:
                self._task.cancel()
                self._task = None

    def expire(self, is_meant: Callable[[Hashable], bool]) -> None:
        """Have the clients of some permissions check before they go on."""
        for key, permission in self._permissions.items():
            if is_meant(key):
                permission.expire()

    async def _run(self) -> None:
        """Check each permission in its turn."""
        while True:
            await asyncio.sleep(self._pause)
            held = [each for each in self._permissions.values() if each.error is None]
            oldest = max(held, key=lambda permission: permission.age, default=None)
            if oldest is not None and oldest.age >= self._max_age:
                try:
                    await oldest.ensure()
                except ClientError:
                    continue  # its clients are awake
