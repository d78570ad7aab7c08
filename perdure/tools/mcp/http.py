"""The HTTP transport to an MCP server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

UNDELIVERED_CODE = -32098
"""An error code of our own: the request did not reach the server, or not its session."""
CONNECT_TIMEOUT = 30.0
"""Seconds for connecting; the answer has the call's own timeout."""
MAX_EVENT_BYTES = 32 * 1024 * 1024
"""The largest result that may come as a server-sent event."""

_SESSION_HEADER = "mcp-session-id"


class _Client(httpx2.AsyncClient):
    """An HTTP client that turns the failure of a request into a JSON-RPC error response to it.

    By itself, the MCP client would end the whole session for a lost connection, and report any
    other failure without its reason.
    """

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
async def http_transport(url: str, headers: dict[str, str]) -> AsyncIterator[tuple[Any, Any]]:
    """Open the streams to and from the server at `url`."""
    timeout = httpx2.Timeout(CONNECT_TIMEOUT, read=None)
    async with (
        _Client(headers=headers, timeout=timeout) as client,
        streamable_http_client(
            url, http_client=client, max_sse_event_size=MAX_EVENT_BYTES
        ) as streams,
    ):
        yield streams
