"""The outermost application: hosts, headers of answers, failures, and a line for each request."""

import json
import logging
import traceback
from time import monotonic
from typing import Any

from pydantic import ValidationError
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from perdure.gateway.edge.audit import JSON, audit_refusal, describe_request, name_path
from perdure.gateway.edge.large_answer import is_slow_reader
from perdure.gateway.errors import Answer, answer_problem
from perdure.gateway.identity.sites import Site
from perdure.telemetry.current import TRACE_ID
from perdure.temporal.names import TRACE_HEADER
from perdure.temporal.sender import sent_from

logger = logging.getLogger("perdure.gateway")
access_logger = logging.getLogger("perdure.gateway.access")

REFUSALS = (401, 403, 408, 413, 421, 429)
"""The statuses of requests that the gateway refuses, which are audited."""

DEFAULT_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""The headers of every answer that does not say something else."""

STRICT_TRANSPORT = "max-age=31536000"

QUIET_PATHS = ("/health", "/ready")
"""Paths that monitors ask all the time, by whatever name: no line is written for them."""


class Guard:
    """The application behind checks that need no user.

    A failure gets an `answer` and is logged without what the request had; where one has begun, the
    connection is closed.
    """

    def __init__(self, app: ASGIApp, site: Site, answer: Answer = answer_problem) -> None:
        self._app = app
        self._site = site
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        connection, began = HTTPConnection(scope), monotonic()
        status: int | None = None

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                status = message["status"]
                self._add_headers(connection, message)
            elif message["type"] == "websocket.accept":
                status = 101
            await send(message)

        try:
            if not self._is_for_us(connection):
                detail = "The gateway is not called so: use the address that it has printed."
                response = self._answer(connection, 421, "unknown_host", detail)
                await response(scope, receive, send_noted)
            else:
                with sent_from(connection.headers.get(TRACE_HEADER)):
                    await self._app(scope, receive, send_noted)
        except Exception as error:
            if is_slow_reader(error):
                audit_refusal(connection, status or 0, "slow_reader")  # its connection closes now
                return
            log_failure(connection, error)
            if status is None and scope["type"] == "http":
                detail = "This is a bug of the gateway, which its log describes."
                answer = self._answer(connection, 500, "internal", detail)
                await answer(scope, receive, send_noted)
        finally:
            self._note(connection, status, monotonic() - began)

    def _is_for_us(self, connection: HTTPConnection) -> bool:
        """Tell whether a request names a host of ours; monitors name addresses of machines."""
        is_probe = connection.scope["path"] in QUIET_PATHS
        return is_probe or self._site.knows_host(connection.headers.get("host", ""))

    def _add_headers(self, connection: HTTPConnection, message: Message) -> None:
        headers = MutableHeaders(scope=message)
        for name, value in DEFAULT_HEADERS.items():
            headers.setdefault(name, value)
        if self._site.is_secure(connection):
            headers.setdefault("Strict-Transport-Security", STRICT_TRANSPORT)

    def _note(self, connection: HTTPConnection, status: int | None, seconds: float) -> None:
        if status in REFUSALS:
            audit_refusal(connection, status)
        if connection.scope["path"] not in QUIET_PATHS:
            fields: dict[str, Any] = {"status": status, "ms": round(seconds * 1000)}
            if (trace_id := TRACE_ID.get()) is not None:
                fields["trace_id"] = trace_id
            access_logger.info("%s", json.dumps(fields | describe_request(connection)), extra=JSON)


def log_failure(connection: HTTPConnection, error: Exception) -> None:
    """Log a bug: where it is, and what it says unless that quotes a request."""
    path = name_path(connection)
    frames = "".join(traceback.format_tb(error.__traceback__))
    says = "" if isinstance(error, ValidationError) else f": {error}"
    logger.error("%s failed: %s%s\n%s", path, type(error).__name__, says, frames)
