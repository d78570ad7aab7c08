"""The spans of a gateway's requests. A gateway without traces does not load this.

A stream of events and a socket have a span that ends when they begin: they last for hours, would
be seen only once they are over, and would hide in every statistic how fast a gateway answers.
"""

import time
from collections.abc import Mapping
from typing import Any

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from perdure.gateway.edge.audit import MAX_PATH_CHARS, PRINCIPAL_KEY, name_path
from perdure.gateway.edge.guard import QUIET_PATHS
from perdure.gateway.identity.principal import Principal
from perdure.telemetry import names
from perdure.telemetry.current import TRACE_ID
from perdure.telemetry.identity import SpanPlace, parse_traceparent
from perdure.telemetry.requests import ServedRequest, new_place, request_span
from perdure.telemetry.sender import Sender
from perdure.temporal.names import TRACE_HEADER

STREAM = b"text/event-stream"

SCHEMES = {"ws": "http", "wss": "https"}

CONVERSATION_PARAMETER = "conversation_id"


class RequestSpans:
    """The application of a gateway with a span for each request, but those of monitors.

    What a request sends is linked to its span: the application gets that as the `traceparent`.
    """

    def __init__(self, app: ASGIApp, sender: Sender) -> None:
        self._app = app
        self._sender = sender

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or scope["path"] in QUIET_PATHS:
            await self._app(scope, receive, send)
            return
        request = _OpenRequest(scope, self._sender)
        trace = TRACE_ID.set(f"{request.place.trace_id:032x}")

        async def send_noted(message: Message) -> None:
            await send(message)
            request.note(message)

        try:
            await self._app(request.scope, receive, send_noted)
        finally:
            TRACE_ID.reset(trace)
            request.finish()


class _OpenRequest:
    """A request whose span has not been made yet."""

    def __init__(self, scope: Scope, sender: Sender) -> None:
        self._sender, self._begin = sender, time.time_ns()
        self._status: int | None = None
        self._is_stream = self._is_finished = False
        connection = HTTPConnection(scope)
        self._parent = parse_traceparent(connection.headers.get(TRACE_HEADER, ""))
        place = new_place(self._parent)
        is_sampled = sender.is_request_sampled(place.trace_id, self._parent)
        self.place = SpanPlace(place.trace_id, place.span_id, is_sampled)
        # A scope of its own, in which the routers note the route.
        self.scope = {**scope, "headers": _replace_header(scope, self.place.traceparent)}

    def note(self, message: Message) -> None:
        """Note a message that was sent, and make the span with the one that ends the request."""
        kind = message["type"]
        if kind in ("http.response.start", "websocket.http.response.start"):
            self._status = message["status"]
            headers = dict(message.get("headers", ()))
            self._is_stream = headers.get(b"content-type", b"").startswith(STREAM)
        elif kind == "websocket.accept":
            self._status, self._is_stream = 101, True
        elif kind == "websocket.close" and self._status is None:
            self._status = 403  # what the server answers to a socket that is not accepted
        is_last = kind == "http.response.body" and not message.get("more_body", False)
        if self._is_stream or is_last:
            self.finish()

    def finish(self) -> None:
        """Make the span, once."""
        if self._is_finished:
            return
        self._is_finished = True
        self._sender.send(request_span(self._describe()))

    def _describe(self) -> ServedRequest:
        scope = self.scope
        address, port = scope.get("server") or (None, None)
        return ServedRequest(
            self.place,
            self._parent,
            self._begin,
            time.time_ns(),
            scope.get("method", "GET"),
            SCHEMES.get(scope["scheme"], scope["scheme"]),
            name_path(HTTPConnection(scope))[:MAX_PATH_CHARS],
            _find_route(scope),
            self._status,
            scope.get("http_version"),
            address,
            port,
            _find_ids(scope, self._status),
        )


def _replace_header(scope: Scope, traceparent: str) -> list[tuple[bytes, bytes]]:
    name = TRACE_HEADER.encode()
    others = [(key, value) for key, value in scope["headers"] if key != name]
    return [*others, (name, traceparent.encode())]


def _find_route(scope: Scope) -> str | None:
    """Return the template of the path that was asked for, under the one of its API."""
    path = getattr(scope.get("route"), "path", None)
    return None if path is None else f"{scope.get('root_path', '')}{path}"


def _find_ids(scope: Scope, status: int | None) -> Mapping[str, Any]:
    """Return the ids of who asks and what for; those of a path that was refused may be anything."""
    principal = scope.get(PRINCIPAL_KEY)
    user_id = principal.user_id if isinstance(principal, Principal) else None
    conversation = scope.get("path_params", {}).get(CONVERSATION_PARAMETER)
    was_found = status is not None and status < 400
    return {
        names.USER_ID: user_id,
        names.CONVERSATION_ID: str(conversation) if conversation and was_found else None,
    }
