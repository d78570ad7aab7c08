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

from perdure.gateway.callers import authenticate
from perdure.gateway.edge.guard import Guard
from perdure.gateway.edge.transfers import TransferLimits
from perdure.gateway.errors import add_error_handlers
from perdure.gateway.gateway import Gateway
from perdure.gateway.openapi import build_openapi
from perdure.gateway.page.routes import page_routes
from perdure.gateway.page.violations import REPORTS_ROUTE
from perdure.gateway.routes import (
    agents,
    batches,
    comparisons,
    control,
    conversations,
    events,
    feed,
    files,
    health,
    keys,
    log,
    login,
    me,
    reading,
    sharing,
    socket,
    stream,
)
from perdure.gateway.sweeping import sweep_tokens

ROUTES = (
    *(health, me, keys, login, agents),
    *(conversations, control, events, log, reading, files, sharing),
    *(stream, socket, feed, batches, comparisons),
)


CORS: dict[str, Any] = {
    "allow_methods": ["GET", "POST", "PUT", "PATCH", "DELETE"],
    "allow_headers": [
        *("Authorization", "Content-Type", "Idempotency-Key", "If-None-Match", "Last-Event-ID")
    ],
    "expose_headers": ["ETag", "Location", "Retry-After", "X-Unreadable-Events"],
}
"""What pages of the allowed sites may do: they send keys, and never the cookie of a session."""


def create_app(gateway: Gateway) -> FastAPI:
    """Build the application that serves the native API of a gateway."""
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
    )
    if settings.gateway_origins:
        app.add_middleware(CORSMiddleware, allow_origins=settings.gateway_origins, **CORS)
    app.add_middleware(Guard, site=gateway.site)
    for routes in ROUTES:
        app.include_router(routes.router)
    app.openapi = partial(build_openapi, app)  # type: ignore[method-assign]
    app.router.routes.extend(
        [*page_routes(gateway.workflows_url, gateway.site.is_secure), REPORTS_ROUTE]
    )
    _build_validators(app)
    return app


@asynccontextmanager
async def _run_while_serving(app: FastAPI) -> AsyncIterator[None]:
    gateway: Gateway = app.state.gateway
    sweeping = asyncio.create_task(sweep_tokens(gateway.store))
    yield
    sweeping.cancel()
    await gateway.followers.close()


def _build_validators(app: FastAPI) -> None:
    """Build the validators of all requests now, which our models leave to their first use.

    FastAPI silences a warning of pydantic only where they are built with the routes.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsupportedFieldAttributeWarning)
        app.openapi()
