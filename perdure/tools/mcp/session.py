"""A session with an MCP server, from its start to its end."""

import asyncio
import contextlib
import contextvars
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version
from typing import Any, TypeVar

import anyio
import mcp_types
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.client import Client, IncomingMessage
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from perdure.tools.mcp import failures
from perdure.tools.mcp.call_trace import Peer, current_call
from perdure.tools.mcp.transports import UNDELIVERED_CODE

MAX_PAGES = 100
"""Pages of a list of tools that are read at most."""
LOST_CODES = (UNDELIVERED_CODE, mcp_types.CONNECTION_CLOSED)
"""The codes of requests that no server has answered."""
CALL_METHOD = "tools/call"
RESUBSCRIBE_DELAY = 1.0
"""Seconds before a subscription to changes is renewed."""

Result = TypeVar("Result")


class McpSession:
    """A session in a task of its own, as the MCP client requires.

    It closes after `idle` seconds without a request, and when the server, whose last words `stderr`
    gives, is gone.
    """

    def __init__(
        self,
        transport: AbstractAsyncContextManager[tuple[Any, Any]],
        start: float,
        idle: float,
        peer: Peer,
        stderr: object = "",
    ) -> None:
        self._transport, self._stderr, self._peer = transport, stderr, peer
        self._start_timeout, self._idle_timeout = start, idle
        self._activity = asyncio.Event()
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._listing = asyncio.Lock()
        self._tools: list[mcp_types.Tool] = []
        self._changes, self._listed_changes = 0, -1
        self._open_requests = 0
        self.lost = False
        self._scope = anyio.CancelScope(deadline=anyio.current_time() + start)
        # A context of its own: the session outlives the activity that opens it.
        self.task = asyncio.create_task(self._run(), context=contextvars.Context())

    @property
    def busy(self) -> bool:
        return self._open_requests > 0 or not self._ready.done()

    async def wait_until_open(self) -> Client:
        """Wait until the session is open. Raises SessionNotStarted."""
        try:
            async with asyncio.timeout(self._start_timeout):
                return await asyncio.shield(self._ready)
        except (TimeoutError, failures.SessionNotStarted) as error:
            stderr = " ".join(str(self._stderr).split())
            note = f"; its last words were: {stderr}" if stderr else ""
            reason = str(error) or f"it did not answer within {self._start_timeout:g} s"
            raise failures.SessionNotStarted(f"{reason}{note}") from error

    def close(self) -> None:
        """Start closing; `task` is done when the server is gone."""
        self._lose()
        self._scope.cancel()

    async def list_tools(self) -> list[mcp_types.Tool]:
        """Return the server's current tools. Raises McpFailure."""
        async with self._listing:
            if (changes := self._changes) != self._listed_changes:
                try:
                    async with asyncio.timeout(self._start_timeout):
                        self._tools = await self._request(_list_all_tools)
                except TimeoutError:
                    message = f"it lists no tools within {self._start_timeout:g} s"
                    raise failures.McpFailure(message) from None
                self._listed_changes = changes
            return self._tools

    async def call(
        self, name: str, arguments: dict[str, Any], report: Callable[[str], None]
    ) -> mcp_types.CallToolResult:
        """Call the tool; cancelling this cancels it on the server. Raises McpFailure."""

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            amount = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
            report(f"{message} ({amount})" if message else amount)

        async def call(client: Client) -> mcp_types.CallToolResult:
            meta = self._note_call(client)
            try:
                return await client.call_tool(
                    name, arguments, progress_callback=on_progress, meta=meta
                )
            except MCPError as error:
                self._note_error(error)
                raise

        return await self._request(call)

    def _note_call(self, client: Client) -> mcp_types.RequestParamsMeta | None:
        """Note whom the call is made to, if it is traced; return what the server is told of it."""
        if (trace := current_call()) is None:
            return None
        trace.peer, trace.protocol_version = self._peer, client.protocol_version
        trace.error_code = None  # of a try before
        if trace.traceparent is None:
            return None
        return mcp_types.RequestParamsMeta(traceparent=trace.traceparent)  # type: ignore[typeddict-unknown-key]

    def _note_error(self, error: MCPError) -> None:
        """Note the code of an answer; those of a lost session are not the server's."""
        if (trace := current_call()) is not None and error.code not in LOST_CODES:
            trace.error_code = error.code

    async def _request(self, operation: Callable[[Client], Awaitable[Result]]) -> Result:
        client = await self.wait_until_open()
        if self.lost:
            raise failures.RequestUndelivered("it is gone")
        self._open_requests += 1
        try:
            return await operation(client)
        except MCPError as error:
            raise self._to_failure(error) from error
        except (RuntimeError, ValidationError) as error:
            message = f"its answer breaks the protocol: {_first_line(error)}"
            raise failures.ProtocolViolation(message) from error
        finally:
            self._open_requests -= 1
            self._activity.set()

    def _to_failure(self, error: MCPError) -> Exception:
        if error.code not in LOST_CODES:
            return failures.McpFailure(error.message)
        self._lose()
        if error.code == UNDELIVERED_CODE:
            return failures.RequestUndelivered(error.message)
        return failures.SessionLost("the session was lost before it answered")

    def _lose(self) -> None:
        self.lost = True
        self._activity.set()

    async def _run(self) -> None:
        info = mcp_types.Implementation(name="perdure", version=version("perdure"))
        try:
            with self._scope:
                async with Client(
                    self._watch_transport(),
                    message_handler=self._on_message,
                    client_info=info,
                    cache=None,
                ) as client:
                    self._listed_changes = 0
                    self._tools = await _list_all_tools(client)
                    self._scope.deadline = math.inf
                    self._ready.set_result(client)
                    await self._wait_until_idle(client)
        except Exception as error:
            self._fail_start(_explain(error))
        finally:
            self._lose()
            self._fail_start()

    def _fail_start(self, reason: str = "") -> None:
        if not self._ready.done():
            self._ready.set_exception(failures.SessionNotStarted(reason))
            self._ready.exception()  # marks it as retrieved: no waiter may be left

    @asynccontextmanager
    async def _watch_transport(self) -> AsyncIterator[tuple[Any, Any]]:
        async with self._transport as (reading, writing):
            yield _WatchedStream(reading, self._lose), _TracedStream(writing)

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self._changes += 1

    async def _wait_until_idle(self, client: Client) -> None:
        """Wait until the session is lost and no request is open, or until it is idle."""
        async with anyio.create_task_group() as group:
            if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
                group.start_soon(self._listen, client)
            idle = False
            while self._open_requests or not (self.lost or idle):
                self._activity.clear()
                with anyio.move_on_after(self._idle_timeout) as waiting:
                    await self._activity.wait()
                idle = waiting.cancelled_caught
            self._lose()
            group.cancel_scope.cancel()

    async def _listen(self, client: Client) -> None:
        """Subscribe to changes, which the protocol requires from version 2026-07-28 on."""
        tools = client.server_capabilities.tools
        while tools and tools.list_changed:
            with contextlib.suppress(MCPError, SubscriptionLost):
                async with client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        self._changes += 1
            await asyncio.sleep(RESUBSCRIBE_DELAY)
            self._changes += 1  # there may have been some that were missed meanwhile


class _WatchedStream(ObjectReceiveStream[Any]):
    """A stream of messages that calls back at its end."""

    def __init__(self, stream: Any, on_end: Callable[[], None]) -> None:
        self._stream = stream
        self._on_end = on_end

    async def receive(self) -> Any:
        try:
            return await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._on_end()
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()


class _TracedStream(ObjectSendStream[Any]):
    """A stream of messages that notes the id of a call's request: the call's task writes it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def send(self, item: Any) -> None:
        if (trace := current_call()) is not None and isinstance(item, SessionMessage):
            message = item.message
            if isinstance(message, mcp_types.JSONRPCRequest) and message.method == CALL_METHOD:
                trace.request_id = str(message.id)
        await self._stream.send(item)

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _list_all_tools(client: Client) -> list[mcp_types.Tool]:
    tools: list[mcp_types.Tool] = []
    cursor = None
    for _ in range(MAX_PAGES):
        try:
            page = await client.list_tools(cursor=cursor)
        except MCPError as error:
            if error.code == mcp_types.METHOD_NOT_FOUND:  # a server without tools
                break
            raise
        tools += page.tools
        if (cursor := page.next_cursor) is None:
            break
    return tools


def _explain(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, MCPError):
        return "it ended at once" if error.code == mcp_types.CONNECTION_CLOSED else error.message
    return _first_line(error)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0].rstrip(".") or type(error).__name__
