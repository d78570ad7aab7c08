"""A browser, and the page of a real gateway in it."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from starlette.applications import Starlette

from perdure.gateway.page.files import load_files
from perdure.gateway.page.routes import page_routes
from perdure.testing.server import serve_app
from tests.gateway.page.browser import Visitor, open_browser, visit
from tests.gateway.page.environment import ready
from tests.gateway.page.modules import Modules
from tests.gateway.stage import GatewayStage


@pytest_asyncio.fixture(scope="session")
async def browser() -> AsyncIterator[Any]:
    """Debian's Chromium, driven by Playwright."""
    if not ready():
        pytest.skip("There is no browser: `make page` installs it.")
    async with open_browser() as opened:
        yield opened


@pytest_asyncio.fixture(scope="session")
async def modules(browser: Any) -> AsyncIterator[Modules]:
    """The modules of the page in a browser, served by its own routes alone."""
    async with serve_app(Starlette(routes=page_routes())) as url:
        opened: Visitor
        async with visit(browser, url) as opened:
            opened.expected.append("404")  # there is no API, so it says that nobody is logged in
            await opened.goto("/")
            yield Modules(opened, load_files().digest)


@pytest_asyncio.fixture
async def anna(browser: Any, stage: GatewayStage) -> AsyncIterator[Visitor]:
    """Anna at the page of the gateway."""
    async with visit(browser, stage.url) as visitor:
        await visitor.log_in(key_of(stage.anna))
        yield visitor


def key_of(client: httpx.AsyncClient) -> str:
    """Return the API key that a client sends."""
    return client.headers["Authorization"].removeprefix("Bearer ")
