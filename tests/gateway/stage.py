"""A gateway that serves on a port of this machine, and HTTP clients of its users."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from starlette.types import ASGIApp

from perdure.agent.spec import Agent
from perdure.api.keys import Scope
from perdure.gateway.app import create_app
from perdure.gateway.edge.http_protocol import LimitedProtocol
from perdure.gateway.gateway import Gateway
from perdure.gateway.serve import GatewayServer, describe_address, listen, server_config
from perdure.settings.settings import Settings
from perdure.storage.credentials.api_keys import create_api_key
from tests.harness import ConversationHarness


@dataclass
class GatewayStage:
    """A gateway at `url`, and a client for each user."""

    harness: ConversationHarness
    gateway: Gateway
    url: str
    anna: httpx.AsyncClient
    ben: httpx.AsyncClient
    _clients: list[httpx.AsyncClient] = field(default_factory=list)

    async def client(
        self, user_id: str, scopes: Collection[Scope] = ("read", "write", "admin")
    ) -> httpx.AsyncClient:
        """Return a client with a new key of a user's."""
        made = await create_api_key(self.gateway.store, user_id, "test", scopes)
        return self.client_with(made.secret)

    def client_with(self, secret: str | None) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        # The gateway closes a connection that has been idle for five seconds: it is not used then.
        limits = httpx.Limits(keepalive_expiry=1.0)
        client = httpx.AsyncClient(base_url=self.url, headers=headers, timeout=60, limits=limits)
        self._clients.append(client)
        return client

    async def start(self, *answers: dict[str, Any], text: str = "Hello?", **fields: Any) -> str:
        """Start a conversation of Anna's whose model gives these answers; return its id."""
        agent = as_json(self.harness.spec(*answers, **fields))
        response = await self.anna.post("/v1/conversations", json={"text": text, "agent": agent})
        assert response.status_code == 201, response.text
        conversation_id: str = response.json()["id"]
        return conversation_id

    async def wait_until(self, conversation_id: str, *statuses: str) -> dict[str, Any]:
        """Wait until Anna's conversation has one of these statuses, and return it."""
        while True:
            shown = (await self.anna.get(f"/v1/conversations/{conversation_id}")).json()
            if shown["status"]["status"] in statuses:
                return dict(shown)
            await asyncio.sleep(0.1)

    async def close(self) -> None:
        for client in self._clients:
            await client.aclose()


def as_json(agent: Agent) -> dict[str, Any]:
    return agent.model_dump(mode="json", exclude_unset=True)


@asynccontextmanager
async def serve_gateway(
    gateway: Gateway,
    protocol: type[LimitedProtocol] = LimitedProtocol,
    port: int = 0,
    wrap: Callable[[ASGIApp], ASGIApp] = lambda app: app,
) -> AsyncIterator[str]:
    """Serve a gateway as its process does while inside, and yield its URL."""
    config = server_config(wrap(create_app(gateway)), gateway.settings.gateway_max_body)
    config.timeout_graceful_shutdown = 0
    config.http = protocol
    server = GatewayServer(config)
    with listen("127.0.0.1", port) as listener:
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield describe_address("127.0.0.1", listener)
        finally:
            server.should_exit = True
            await running


@asynccontextmanager
async def open_gateway(
    harness: ConversationHarness,
    protocol: type[LimitedProtocol] = LimitedProtocol,
    **settings: Any,
) -> AsyncIterator[GatewayStage]:
    """Serve a gateway over the servers of the harness while inside."""
    gateway = Gateway(harness.client, Settings(**{"gateway_trusted": True, **settings}))
    async with serve_gateway(gateway, protocol) as url:
        nobody = httpx.AsyncClient(base_url=url)
        stage = GatewayStage(harness, gateway, url, nobody, nobody, [nobody])
        stage.anna = await stage.client("anna")
        stage.ben = await stage.client("ben")
        try:
            yield stage
        finally:
            await stage.close()
