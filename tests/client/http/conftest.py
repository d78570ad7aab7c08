"""A gateway that is killed, and conversations behind it."""

from collections.abc import AsyncIterator

import pytest_asyncio

from perdure.embedded.temporal import TemporalServer
from tests.client.http.gateway_process import GatewayProcess, open_gateway_process
from tests.harness import ConversationHarness


@pytest_asyncio.fixture
async def gateway(
    harness: ConversationHarness, temporal_server: TemporalServer
) -> AsyncIterator[GatewayProcess]:
    async with open_gateway_process(harness, temporal_server) as opened:
        yield opened
