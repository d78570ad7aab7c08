"""A server of the Model Context Protocol that is spoken to over HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

UNDELIVERED = -32098
"""An error of our own: the request has not reached the server, or not its session."""

CONNECT_TIMEOUT = 30.0
"""Seconds; for an answer, a call's own time counts."""

LONGEST_EVENT = 32 * 1024 * 1024
"""Bytes of a result that comes as an event."""

_SESSION = "mcp-session-id"


class _Client(httpx2.AsyncClient):
    """Tells of what goes wrong with one request as the answer to that request.

    The protocol's client would end the whole session for a lost connection, and for anything else
    say no more than that there was an error.
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        if request.method != "POST":
            return await super().send(request, **options)
        try:
            response = await super().send(request, **options)
            if response.is_error:
                return await _explained(request, response)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.UnsupportedProtocol) as error:
            return _answer(request, UNDELIVERED, f"it cannot be reached: {_said(error)}")
        except httpx2.TransportError as error:
            return _answer(request, CONNECTION_CLOSED, f"the connection broke: {_said(error)}")
        return response


async def _explained(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    try:
        body = await response.aread()
    finally:
        await response.aclose()
    if response.status_code == httpx2.codes.NOT_FOUND and _SESSION in request.headers:
        return _answer(request, UNDELIVERED, "it does not know the session any more")
    try:
        JSONRPCError.model_validate_json(body)
    except ValidationError:
        status = f"it answered HTTP {response.status_code} {response.reason_phrase}"
        return _answer(request, INTERNAL_ERROR, status)
    return response


def _answer(request: httpx2.Request, code: int, message: str) -> httpx2.Response:
    error = JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=code, message=message))
    return httpx2.Response(
        httpx2.codes.BAD_GATEWAY,
        headers={"content-type": "application/json"},
        content=error.model_dump_json(by_alias=True, exclude_unset=True),
        request=request,
    )


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__


@asynccontextmanager
async def http(url: str, headers: dict[str, str]) -> AsyncIterator[tuple[Any, Any]]:
    """The streams to and from the server at `url`."""
    timeout = httpx2.Timeout(CONNECT_TIMEOUT, read=None)
    async with (
        _Client(headers=headers, timeout=timeout) as client,
        streamable_http_client(
            url, http_client=client, max_sse_event_size=LONGEST_EVENT
        ) as streams,
    ):
        yield streams
