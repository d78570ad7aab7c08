"""One session with a server of the Model Context Protocol, from its start to its end."""

import asyncio
import contextlib
import contextvars
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio
from mcp.client import Client, IncomingMessage
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    METHOD_NOT_FOUND,
    CallToolResult,
    Implementation,
    Tool,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from tools.mcp.failures import Interrupted, Malformed, NotStarted, Refused, Undelivered
from tools.mcp.http import UNDELIVERED

PAGES = 100
"""Pages of a list of tools that are read, at most."""

AGAIN = 1.0
"""Seconds before a server is asked once more to tell of its changes."""

Answer = TypeVar("Answer")


class Session:
    """Entered and left by one task of its own, as the protocol's client wants it.

    It ends by itself after `idle` seconds without a request, and when the server is gone.
    """

    def __init__(
        self, transport: AbstractAsyncContextManager[tuple[Any, Any]], start: float, idle: float
    ) -> None:
        self._transport = transport
        self._start, self._idle = start, idle
        self._stirred = asyncio.Event()
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._listing = asyncio.Lock()
        self._tools: list[Tool] = []
        self._current = False
        self._requests = 0
        self.lost = False
        self._scope = anyio.CancelScope(deadline=anyio.current_time() + start)
        # A context of its own: it outlives the step of a conversation that opens it.
        self.task = asyncio.create_task(self._live(), context=contextvars.Context())

    @property
    def busy(self) -> bool:
        return self._requests > 0 or not self._ready.done()

    async def opened(self) -> Client:
        """Raises NotStarted."""
        try:
            async with asyncio.timeout(self._start):
                return await asyncio.shield(self._ready)
        except TimeoutError:
            raise NotStarted(f"it did not answer within {self._start:g} s") from None

    def end(self) -> None:
        """Take leave of the server; `task` is done when it is gone."""
        self._lose()
        self._scope.cancel()

    async def tools(self) -> list[Tool]:
        """What the server offers now. Raises McpFailure."""
        async with self._listing:
            if not self._current:
                self._current = True  # until a change is told of, and be it in the meantime
                try:
                    async with asyncio.timeout(self._start):
                        self._tools = await self._request(_listed)
                except BaseException as error:
                    self._current = False
                    if isinstance(error, TimeoutError):
                        raise Refused(f"it lists no tools within {self._start:g} s") from None
                    raise
            return self._tools

    async def call(
        self, name: str, arguments: dict[str, Any], tell: Callable[[str], None]
    ) -> CallToolResult:
        """What the tool answers, with its progress told to `tell`. Raises McpFailure.

        A call that is cancelled is cancelled at the server.
        """

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            done = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
            tell(f"{message} ({done})" if message else done)

        return await self._request(
            lambda client: client.call_tool(name, arguments, progress_callback=on_progress)
        )

    async def _request(self, ask: Callable[[Client], Awaitable[Answer]]) -> Answer:
        client = await self.opened()
        if self.lost:
            raise Undelivered("it is gone")
        self._requests += 1
        try:
            return await ask(client)
        except MCPError as error:
            raise self._failure(error) from error
        except (RuntimeError, ValidationError) as error:
            raise Malformed(f"its answer breaks the protocol: {_first_line(error)}") from error
        finally:
            self._requests -= 1
            self._stirred.set()

    def _failure(self, error: MCPError) -> Exception:
        if error.code not in (UNDELIVERED, CONNECTION_CLOSED):
            return Refused(error.message)
        self._lose()
        if error.code == UNDELIVERED:
            return Undelivered(error.message)
        return Interrupted("the session was lost before it answered")

    def _lose(self) -> None:
        self.lost = True
        self._stirred.set()

    async def _live(self) -> None:
        try:
            with self._scope:
                async with Client(
                    self._watched(),
                    message_handler=self._heard,
                    client_info=Implementation(name="perdure", version=version("perdure")),
                    cache=None,
                ) as client:
                    self._current = True
                    self._tools = await _listed(client)
                    self._scope.deadline = math.inf
                    self._ready.set_result(client)
                    await self._rest(client)
        except Exception as error:
            self._give_up(_reason(error))
        finally:
            self._lose()
            self._give_up(f"it did not answer within {self._start:g} s")

    def _give_up(self, reason: str) -> None:
        if not self._ready.done():
            self._ready.set_exception(NotStarted(reason))
            self._ready.exception()  # whoever waited for it may be gone

    @asynccontextmanager
    async def _watched(self) -> AsyncIterator[tuple[Any, Any]]:
        async with self._transport as (reading, writing):
            yield _Watched(reading, self._lose), writing

    async def _heard(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._current = False

    async def _rest(self, client: Client) -> None:
        """Until it is lost and the last request is answered, or nobody asks for anything."""
        async with anyio.create_task_group() as group:
            if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
                group.start_soon(self._listen, client)
            idle = False
            while self._requests or not (self.lost or idle):
                self._stirred.clear()
                with anyio.move_on_after(self._idle) as waiting:
                    await self._stirred.wait()
                idle = waiting.cancelled_caught
            self._lose()
            group.cancel_scope.cancel()

    async def _listen(self, client: Client) -> None:
        """From 2026-07-28 on, only those who listen are told of changes."""
        tools = client.server_capabilities.tools
        while tools and tools.list_changed:
            with contextlib.suppress(MCPError, SubscriptionLost):
                async with client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        self._current = False
            await asyncio.sleep(AGAIN)
            self._current = False  # nobody told what happened meanwhile


class _Watched:
    """A stream of messages, of whose end somebody is told."""

    def __init__(self, stream: Any, ended: Callable[[], None]) -> None:
        self._stream = stream
        self._ended = ended

    @property
    def last_context(self) -> contextvars.Context | None:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        try:
            return await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._ended()
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.aclose()


async def _listed(client: Client) -> list[Tool]:
    tools: list[Tool] = []
    cursor = None
    for _ in range(PAGES):
        try:
            page = await client.list_tools(cursor=cursor)
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND:  # a server of prompts, say
                break
            raise
        tools += page.tools
        if (cursor := page.next_cursor) is None:
            break
    return tools


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, MCPError):
        return "it ended at once" if error.code == CONNECTION_CLOSED else error.message
    return _first_line(error)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0].rstrip(".") or type(error).__name__
