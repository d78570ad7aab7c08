"""Every test here runs over the library's own client, and over that of a gateway.

That over a gateway is `long`, but for the tests of turns.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.client.contract.clients import Clients, open_clients
from tests.client.http.conftest import gateway
from tests.harness import ConversationHarness

__all__ = ["gateway"]


@pytest_asyncio.fixture(params=["library", pytest.param("gateway", marks=pytest.mark.long)])
async def clients(
    request: pytest.FixtureRequest, harness: ConversationHarness
) -> AsyncIterator[Clients]:
    async with open_clients(harness, request.param) as opened:
        yield opened
