"""Routes of OpenHands' client that tell about the server; nobody needs a key to ask."""

from importlib.metadata import version
from time import monotonic

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from perdure.gateway.callers import find_gateway
from perdure.operations.worker.readiness import find_missing

STARTED = monotonic()

SDK_VERSION = "1.58.2"
"""The version of openhands-sdk whose client these routes were tried with."""

CAPABILITIES = ("idempotent_conversation_create_v1",)


async def show_life(_: Request) -> Response:
    """Tell that the process answers."""
    return JSONResponse({"status": "ok"})


async def show_readiness(request: Request) -> Response:
    """Tell whether Temporal and the store answer."""
    gateway = find_gateway(request)
    if (missing := await find_missing(gateway.store, gateway.client.temporal)) is None:
        return JSONResponse({"status": "ready"})
    return JSONResponse({"detail": f"{missing} does not answer."}, 503, {"Retry-After": "2"})


async def show_server(_: Request) -> Response:
    """Tell what the server is."""
    uptime = monotonic() - STARTED
    return JSONResponse(
        {
            "title": "perdure",
            "version": version("perdure"),
            "sdk_version": SDK_VERSION,
            "uptime": uptime,
            "idle_time": 0.0,
            "usable_tools": ["terminal", "file_editor", "task_tracker"],
            "capabilities": list(CAPABILITIES),
        }
    )


ROUTES = [
    Route("/alive", show_life),
    Route("/health", show_life),
    Route("/ready", show_readiness),
    Route("/server_info", show_server),
]
