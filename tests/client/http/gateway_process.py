"""A gateway in a process of its own, which can be killed and started again at the same address."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from perdure.client.http.client import HttpClient
from perdure.embedded.gateway import GatewayServer
from perdure.embedded.temporal import TemporalServer
from perdure.embedded.worker_command import GATEWAY_COMMAND
from perdure.storage.credentials.api_keys import create_api_key
from tests.cli.command import clean_environment
from tests.harness import ConversationHarness


@dataclass
class GatewayProcess:
    """The process, and a key of Anna's."""

    server: GatewayServer
    env: Mapping[str, str]
    key: str

    @property
    def url(self) -> str:
        return self.server.url

    def client(self) -> HttpClient:
        return HttpClient(self.url, self.key)

    async def start(self) -> None:
        await self.server.launch(self.env)
        await self.server.wait_until_ready()

    async def kill(self) -> None:
        """Kill it in the middle of whatever it does."""
        self.server.process.kill()
        await self.server.process.wait()

    async def restart(self, pause: float) -> None:
        """Kill it, and start it again after some seconds."""
        await self.kill()
        await asyncio.sleep(pause)
        await self.start()


@asynccontextmanager
async def open_gateway_process(
    harness: ConversationHarness, temporal: TemporalServer
) -> AsyncIterator[GatewayProcess]:
    """Serve a gateway over the servers of the harness while inside."""
    env = {
        **clean_environment(),
        "TEMPORAL_ADDRESS": temporal.address,
        "PERDURE_STORE": (harness.folder / "store").as_uri(),
        "PERDURE_TASK_QUEUE": harness.client.task_queue,
        "PERDURE_GATEWAY_TRUSTED": "true",
    }
    folder = harness.folder / "gateway"
    folder.mkdir()
    key = await create_api_key(harness.client.store, "anna", "test", ["read", "write"])
    server = GatewayServer.prepare(folder, GATEWAY_COMMAND)
    gateway = GatewayProcess(server, env, key.secret)
    await gateway.start()
    try:
        yield gateway
    finally:
        await server.stop()
