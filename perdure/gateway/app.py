"""The application of a gateway."""

import asyncio
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI
from pydantic.warnings import UnsupportedFieldAttributeWarning
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import Response

from perdure.gateway.ag_ui.app import PATH as AG_UI_PATH
from perdure.gateway.ag_ui.app import create_ag_ui_app
from perdure.gateway.callers import authenticate
from perdure.gateway.edge.guard import Guard
from perdure.gateway.edge.transfers import TransferLimits
from perdure.gateway.errors import add_error_handlers, answer_problem
from perdure.gateway.gateway import Gateway
from perdure.gateway.mcp.endpoint import McpEndpoint
from perdure.gateway.openai.app import HEADERS as OPENAI_HEADERS
from perdure.gateway.openai.app import PATH as OPENAI_PATH
from perdure.gateway.openai.app import create_openai_app
from perdure.gateway.openai.closing import Closing
from perdure.gateway.openai.errors import error_response
from perdure.gateway.openapi import build_openapi
from perdure.gateway.openhands.app import PATH as OPENHANDS_PATH
from perdure.gateway.openhands.app import create_openhands_app
from perdure.gateway.page.routes import page_routes
from perdure.gateway.page.violations import REPORTS_ROUTE
from perdure.gateway.routes import (
    addresses,
    agents,
    batches,
    comparisons,
    control,
    conversations,
    discussions,
    events,
    feed,
    files,
    health,
    keys,
    log,
    login,
    me,
    memories,
    reading,
    schedules,
    secrets,
    sharing,
    socket,
    stream,
    waiting,
    webhooks,
)
from perdure.gateway.sweeping import sweep_tokens

ROUTES = (
    *(health, me, keys, login, agents, secrets),
    *(conversations, control, events, log, reading, files, sharing),
    *(stream, socket, feed, batches, comparisons, discussions, memories, schedules),
    *(waiting, webhooks, addresses),
)


CORS: dict[str, Any] = {
    "allow_methods": ["GET", "POST", "PUT", "PATCH", "DELETE"],
    "allow_headers": [
        *("Authorization", "Content-Type", "Idempotency-Key", "If-None-Match", "Last-Event-ID"),
        "traceparent",
        *OPENAI_HEADERS,
    ],
    "expose_headers": [
        *("ETag", "Location", "Retry-After", "X-Unreadable-Events", "X-Conversation-Id")
    ],
}
"""What pages of the allowed sites may do: they send keys, and never the cookie of a session."""


def create_app(gateway: Gateway) -> FastAPI:
    """Build the application that serves the native API of a gateway, and those of others."""
    app = FastAPI(
        title="perdure",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_run_while_serving,
    )
    app.state.gateway = gateway
    add_error_handlers(app)
    settings = gateway.settings  # the last one is the outermost
    app.add_middleware(
        TransferLimits,
        most=settings.gateway_max_body,
        identify=authenticate,
        held=gateway.held_bytes,
        answer=_answer_by_path,
    )
    if settings.gateway_origins:
        app.add_middleware(CORSMiddleware, allow_origins=settings.gateway_origins, **CORS)
    app.add_middleware(Guard, site=gateway.site, answer=_answer_by_path)
    for routes in ROUTES:
        app.include_router(routes.router)
    app.state.closing = Closing(gateway)
    app.mount(OPENAI_PATH, create_openai_app(gateway, app.state.closing))
    app.openapi = partial(build_openapi, app)  # type: ignore[method-assign]
    app.router.routes.extend(
        [*page_routes(gateway.workflows_url, gateway.site.is_secure), REPORTS_ROUTE]
    )
    app.state.mcp = McpEndpoint(gateway)
    app.router.routes.append(app.state.mcp.route())
    app.mount(OPENHANDS_PATH, create_openhands_app(gateway))
    app.mount(AG_UI_PATH, create_ag_ui_app(gateway))
    _build_validators(app)
    return app


def _answer_by_path(connection: HTTPConnection, status: int, code: str, detail: str) -> Response:
    """Answer an error outside of all routes in the shape of the API that was asked."""
    if connection.scope["path"].startswith(f"{OPENAI_PATH}/"):
        return error_response(status, code, detail)
    return answer_problem(connection, status, code, detail)


@asynccontextmanager
async def _run_while_serving(app: FastAPI) -> AsyncIterator[None]:
    gateway: Gateway = app.state.gateway
    sweeping = asyncio.create_task(sweep_tokens(gateway.store))
    async with app.state.mcp.run():
        yield
    sweeping.cancel()
    await app.state.closing.stop()
    await gateway.turns.close()
    await gateway.followers.close()
    await gateway.discussions.close()
    await gateway.lists.close()


def _build_validators(app: FastAPI) -> None:
    """Build the validators of all requests now, which our models leave to their first use.

    FastAPI silences a warning of pydantic only where they are built with the routes.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsupportedFieldAttributeWarning)
        app.openapi()
