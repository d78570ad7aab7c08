"""A gateway with its servers in a folder, for programs that visit its page."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from perdure.activities.support.resources import Resources
from perdure.client.client import Client
from perdure.embedded.temporal import TemporalServer
from perdure.models.router import ModelRouter
from perdure.storage.files import FileStore
from perdure.temporal.connect import connect
from tests.gateway.stage import GatewayStage, open_gateway
from tests.harness import ConversationHarness


@asynccontextmanager
async def open_stage(folder: Path, closing: AsyncExitStack) -> AsyncIterator[GatewayStage]:
    """Start Temporal, a store, a worker and a gateway in a folder."""
    server = await TemporalServer.start(folder / "temporal", ui=False)
    closing.push_async_callback(server.stop)
    store = FileStore(folder / "store")
    client = Client(await connect(server.address), store, task_queue="pictures")
    resources = Resources(store, ModelRouter(), folder / "workspaces")
    harness = ConversationHarness(client, resources, folder)
    ui = "http://127.0.0.1:8233"
    async with harness.worker(), open_gateway(harness, gateway_temporal_ui=ui) as stage:
        yield stage
