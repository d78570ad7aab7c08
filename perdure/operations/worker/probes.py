"""Liveness and readiness over HTTP: /livez and /readyz, for whoever starts and ends processes."""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from perdure.embedded.errors import PortTaken
from perdure.testing.server import serve_listener

FindReason: TypeAlias = Callable[[], Awaitable[str | None]]
"""Returns why the answer is no, as a sentence; None for yes."""


def listen(port: int) -> socket.socket:
    """Listen at a port of all addresses of this machine. Raises PortTaken."""
    try:
        return socket.create_server(("0.0.0.0", port))
    except (OSError, OverflowError) as error:
        raise PortTaken(f"The port {port} cannot be had ({error}): name another one.") from error


@asynccontextmanager
async def serve_probes(
    listener: socket.socket,
    find_unready: FindReason,
    find_dead: FindReason | None = None,
    describe: Callable[[], dict[str, int]] = dict,
) -> AsyncIterator[None]:
    """Answer probes inside the context; without `find_dead`, to answer is to live.

    What `describe` returns is told with the readiness.
    """

    async def show_liveness(_: Request) -> JSONResponse:
        reason = await find_dead() if find_dead else None
        return _answer("ok", "dead", reason, {})

    async def show_readiness(_: Request) -> JSONResponse:
        return _answer("ready", "unready", await find_unready(), describe())

    routes = [Route("/livez", show_liveness), Route("/readyz", show_readiness)]
    async with serve_listener(Starlette(routes=routes), listener):
        yield


def _answer(yes: str, no: str, reason: str | None, more: dict[str, int]) -> JSONResponse:
    if reason is None:
        return JSONResponse({"status": yes, **more})
    return JSONResponse({"status": no, "reason": reason, **more}, 503)
