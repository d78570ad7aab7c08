"""The transports to an MCP server: by HTTP, or by stdio to a process of the worker."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

from perdure.tools.mcp.call_trace import Peer

UNDELIVERED_CODE = -32098
"""An error code of our own: the request did not reach the server, or not its session."""
CONNECT_TIMEOUT = 30.0
"""Seconds for connecting; the answer has the call's own timeout."""
MAX_EVENT_BYTES = 32 * 1024 * 1024
"""The largest result that may come as a server-sent event."""

_SESSION_HEADER = "mcp-session-id"

MAX_STDERR_BYTES = 2_000
"""The end of a server's standard error that is kept."""
STDERR_TIMEOUT = 0.5
"""Seconds for the rest of standard error to arrive once the server is gone."""

# Not `-m`, which would put the working directory, the agent's, before Python's own modules.
_REAPER_PROGRAM = """\
import sys
sys.path.append(sys.argv[1])
from perdure.tools.mcp.subprocess_reaper import main
sys.exit(main(int(sys.argv[2]), sys.argv[3:]))
"""


class _Client(httpx2.AsyncClient):
    """An HTTP client that turns the failure of a request into a JSON-RPC error response to it.

    By itself, the MCP client would end the whole session for a lost connection, and report any
    other failure without its reason. It notes the id that the server gives the session.
    """

    def __init__(self, peer: Peer, headers: dict[str, str], timeout: httpx2.Timeout) -> None:
        super().__init__(headers=headers, timeout=timeout)
        self._peer = peer

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        if request.method != "POST":
            return await super().send(request, **options)
        try:
            response = await super().send(request, **options)
            if response.is_error:
                return await _explain_error(request, response)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.UnsupportedProtocol) as error:
            reason = f"it cannot be reached: {str(error) or type(error).__name__}"
            return _error_response(request, UNDELIVERED_CODE, reason)
        except httpx2.TransportError as error:
            reason = f"the connection broke: {str(error) or type(error).__name__}"
            return _error_response(request, CONNECTION_CLOSED, reason)
        self._peer.session_id = response.headers.get(_SESSION_HEADER) or self._peer.session_id
        return response


async def _explain_error(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    try:
        body = await response.aread()
    finally:
        await response.aclose()
    if response.status_code == httpx2.codes.NOT_FOUND and _SESSION_HEADER in request.headers:
        return _error_response(request, UNDELIVERED_CODE, "it does not know the session any more")
    try:
        JSONRPCError.model_validate_json(body)
    except ValidationError:
        status = f"it answered HTTP {response.status_code} {response.reason_phrase}"
        return _error_response(request, INTERNAL_ERROR, status)
    return response


def _error_response(request: httpx2.Request, code: int, message: str) -> httpx2.Response:
    error = JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=code, message=message))
    return httpx2.Response(
        httpx2.codes.BAD_GATEWAY,
        headers={"content-type": "application/json"},
        content=error.model_dump_json(by_alias=True, exclude_unset=True),
        request=request,
    )


@asynccontextmanager
async def http_transport(
    url: str, headers: dict[str, str], peer: Peer
) -> AsyncIterator[tuple[Any, Any]]:
    """Open the streams to and from the server at `url`."""
    timeout = httpx2.Timeout(CONNECT_TIMEOUT, read=None)
    async with (
        _Client(peer, headers, timeout) as client,
        streamable_http_client(
            url, http_client=client, max_sse_event_size=MAX_EVENT_BYTES
        ) as streams,
    ):
        yield streams


class StderrTail(asyncio.Protocol):
    """The last bytes of a server's standard error."""

    def __init__(self) -> None:
        self._tail = b""
        self.closed = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self._tail = (self._tail + data)[-MAX_STDERR_BYTES:]

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        self.closed.set()

    def __str__(self) -> str:
        return self._tail.decode(errors="replace").strip()


@asynccontextmanager
async def stdio_transport(
    command: list[str], folder: Path, environment: dict[str, str], stderr: StderrTail
) -> AsyncIterator[tuple[Any, Any]]:
    """Start a server and open its streams; the server ends with the `with` block.

    The MCP client adds a few variables of its own to `environment`, such as HOME and PATH.
    """
    arguments = [str(Path(__file__).parents[3]), str(os.getpid()), *command]
    process = StdioServerParameters(
        command=sys.executable,
        args=["-I", "-S", "-c", _REAPER_PROGRAM, *arguments],
        env=environment,
        cwd=folder,
        encoding_error_handler="replace",
    )
    reading, writing = os.pipe()
    loop, file = asyncio.get_running_loop(), os.fdopen(reading, "rb", buffering=0)
    pipe, _ = await loop.connect_read_pipe(lambda: stderr, file)
    try:
        with os.fdopen(writing, "w") as errors:
            async with stdio_client(process, errors) as streams:
                errors.close()
                yield streams
    finally:
        with anyio.move_on_after(STDERR_TIMEOUT, shield=True):
            await stderr.closed.wait()
        pipe.close()
