"""A client that is about to connect."""

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, Protocol, TypeVar


class Closable(Protocol):
    async def close(self) -> None: ...


ClientT = TypeVar("ClientT", bound=Closable)


class Connecting(Generic[ClientT]):
    """A client that is about to connect: to be awaited, or entered by `async with`."""

    def __init__(self, connect: Callable[[], Awaitable[ClientT]]) -> None:
        self._connect = connect
        self._client: ClientT | None = None

    def __await__(self) -> Generator[Any, Any, ClientT]:
        return self._connect().__await__()

    async def __aenter__(self) -> ClientT:
        self._client = await self._connect()
        return self._client

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.close()
