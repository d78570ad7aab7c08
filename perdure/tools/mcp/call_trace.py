"""The trace of a tool's call at an MCP server, as telemetry wants to know of it.

It is filled in where a step has set one, and nowhere else: without telemetry nothing is noted.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass
class Peer:
    """The server at the other end of a session; without an address it is a process of the worker.

    `session_id` is what the server calls the session, in the versions of the protocol that have it.
    """

    transport: Literal["pipe", "tcp"]
    address: str | None = None
    port: int | None = None
    session_id: str | None = None


@dataclass
class CallTrace:
    """The trace of a call's newest try; its fields are None where the server was not asked.

    `traceparent` is the call's span in W3C's form, which the server is told; None tells nothing.
    `error_code` is the code of JSON-RPC that the server has answered with.
    """

    traceparent: str | None = None
    peer: Peer | None = None
    protocol_version: str | None = None
    request_id: str | None = None
    error_code: int | None = None


_CURRENT: ContextVar[CallTrace | None] = ContextVar("mcp call", default=None)


def current_call() -> CallTrace | None:
    return _CURRENT.get()


@contextmanager
def tracing_call(trace: CallTrace | None) -> Iterator[CallTrace | None]:
    """Have a call inside, in whatever task, fill in the trace."""
    token = _CURRENT.set(trace)
    try:
        yield trace
    finally:
        _CURRENT.reset(token)


def peer_of(url: str | None) -> Peer:
    """Return the server at a URL, whose path and credentials are nobody's matter; None is stdio."""
    if not url:
        return Peer("pipe")
    try:
        parts = urlsplit(url)
        return Peer("tcp", parts.hostname, parts.port or DEFAULT_PORTS.get(parts.scheme))
    except ValueError:  # the transport says what is wrong with it
        return Peer("tcp")
