"""A Temporal server, a store and a worker, within this process and as for the commands."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from perdure.client.http.client import HttpClient
from perdure.client.protocol import ConversationClient
from perdure.operations.worker.process import workspace_queue
from perdure.storage.credentials.api_keys import create_api_key
from tests.cli.conftest import behind_gateway, configured, perdure, provider, script, store
from tests.gateway.stage import open_gateway
from tests.harness import ConversationHarness
from tests.workflows.conftest import harness, temporal

__all__ = [
    "behind_gateway",
    "configured",
    "harness",
    "perdure",
    "provider",
    "script",
    "store",
    "temporal",
]


@pytest_asyncio.fixture
async def world(harness: ConversationHarness) -> AsyncIterator[ConversationHarness]:
    """The servers and a worker with workspaces, as `perdure worker` has them."""
    home = workspace_queue(harness.resources.workspaces, harness.client.task_queue)
    world = replace(harness, resources=replace(harness.resources, home=home))
    async with world.worker():
        yield world


@pytest_asyncio.fixture(params=["servers", "gateway"])
async def client(
    world: ConversationHarness, request: pytest.FixtureRequest
) -> AsyncIterator[ConversationClient]:
    """A client of the servers themselves, and one of a gateway."""
    if request.param == "servers":
        yield world.client
        return
    settings: dict[str, Any] = {"gateway_max_concurrent_conversations": 0}
    async with open_gateway(world, **settings) as stage:
        key = await create_api_key(stage.gateway.store, "anna", "acp", ("read", "write"))
        async with HttpClient(stage.url, key.secret) as opened:
            yield opened
