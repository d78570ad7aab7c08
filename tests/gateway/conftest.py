"""A gateway on a port of its own, over a real Temporal, store and worker."""

import uuid
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio
import temporalio.client

from perdure.activities.support.resources import Resources
from perdure.client.client import Client
from perdure.models.router import ModelRouter
from perdure.operations.worker.process import workspace_queue
from perdure.storage.files import FileStore
from tests.gateway.stage import GatewayStage, open_gateway
from tests.harness import ConversationHarness
from tests.workflows.conftest import harness, temporal

__all__ = ["harness", "temporal"]


@pytest.fixture
def world(harness: ConversationHarness) -> ConversationHarness:
    """The servers and a worker with workspaces, as `perdure worker` has them."""
    home = workspace_queue(harness.resources.workspaces, harness.client.task_queue)
    return replace(harness, resources=replace(harness.resources, home=home))


@pytest_asyncio.fixture
async def stage(world: ConversationHarness) -> AsyncIterator[GatewayStage]:
    """A gateway, its worker, and the keys of Anna and Ben."""
    async with world.worker(), open_gateway(world) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def idle_stage(
    temporal: temporalio.client.Client, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[GatewayStage]:
    """A gateway without a worker, for tests that start no conversation."""
    folder = tmp_path_factory.mktemp("idle")
    store = FileStore(folder / "store")
    client = Client(temporal, store, task_queue=f"test-{uuid.uuid4()}")
    idle = ConversationHarness(client, Resources(store, ModelRouter(), folder), folder)
    rates = dict.fromkeys(("read", "write", "costly", "failure", "report"), 6e6)
    async with open_gateway(idle, gateway_rates=rates) as opened:
        yield opened
