"""The spans of requests that a gateway serves, by the HTTP conventions."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perdure.telemetry import names
from perdure.telemetry.identity import SPAN_BYTES, TRACE_BYTES, SpanPlace
from perdure.telemetry.spans import Span

METHODS = frozenset(
    ("CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE")
)
"""The methods that the conventions know: any other may be a text of whoever asks."""

OTHER = "_OTHER"


@dataclass(frozen=True)
class ServedRequest:
    """A request that was answered, with moments in nanoseconds; a socket's is its opening.

    `route` is the template of its path, and `path` has no secret; both are None where nothing of
    ours was asked for. Without a `status` nobody was there to take the answer.
    """

    place: SpanPlace
    parent: SpanPlace | None
    begin: int
    end: int
    method: str
    scheme: str
    path: str
    route: str | None = None
    status: int | None = None
    http_version: str | None = None
    address: str | None = None
    port: int | None = None
    ids: Mapping[str, str | None] | None = None
    """The ids of the user and the conversation, by the names of their attributes."""


def new_place(parent: SpanPlace | None) -> SpanPlace:
    """Return a new place in the trace of a parent, or in one of its own.

    Nobody makes the span of a request twice: its id follows from nothing.
    """
    trace_id = parent.trace_id if parent else int.from_bytes(secrets.token_bytes(TRACE_BYTES))
    return SpanPlace(trace_id or 1, int.from_bytes(secrets.token_bytes(SPAN_BYTES)) or 1)


def request_span(request: ServedRequest) -> Span:
    """Return the span of a request: named by its route, which has few values."""
    method = request.method if request.method in METHODS else OTHER
    head = "HTTP" if method == OTHER else method
    attributes: dict[str, Any] = {
        names.HTTP_METHOD: method,
        names.HTTP_ROUTE: request.route,
        names.HTTP_STATUS: request.status,
        names.URL_SCHEME: request.scheme,
        names.URL_PATH: request.path,
        names.NETWORK_PROTOCOL: "http",
        names.NETWORK_PROTOCOL_VERSION: request.http_version,
        names.SERVER_ADDRESS: request.address,
        names.SERVER_PORT: request.port,
        **(request.ids or {}),
    }
    return Span(
        f"{head} {request.route}" if request.route else head,
        request.place,
        request.begin,
        max(request.begin, request.end),
        {name: value for name, value in attributes.items() if value is not None},
        parent=request.parent,
        kind="server",
        error=_error_of(request.status),
    )


def _error_of(status: int | None) -> str | None:
    """Return the error of a server's span: a client's mistake is none of the server."""
    if status is None:
        return OTHER
    return str(status) if status >= 500 else None
