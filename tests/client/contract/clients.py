"""Clients of one kind, over the servers of a harness: the library's own, or those of a gateway."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Literal, TypeAlias

from temporalio.client import WorkflowHandle

from perdure.client.http.client import HttpClient
from perdure.client.protocol import ConversationClient
from perdure.storage.credentials.api_keys import create_api_key
from perdure.temporal.names import conversation_workflow_id
from tests.client.strangers import client_of
from tests.gateway.stage import open_gateway
from tests.harness import ConversationHarness

Kind: TypeAlias = Literal["library", "gateway"]


@dataclass
class Clients:
    """The clients of Anna and Ben."""

    harness: ConversationHarness
    anna: ConversationClient
    ben: ConversationClient

    def workflow(self, conversation_id: str) -> WorkflowHandle[object, object]:
        """Return the handle of the workflow of a conversation of Anna's."""
        name = conversation_workflow_id("anna", conversation_id)
        return self.harness.client.temporal.get_workflow_handle(name)


@asynccontextmanager
async def open_clients(harness: ConversationHarness, kind: Kind) -> AsyncIterator[Clients]:
    if kind == "library":
        yield Clients(harness, client_of(harness, "anna"), client_of(harness, "ben"))
        return
    async with AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(open_gateway(harness))
        clients = []
        for user_id in ("anna", "ben"):
            key = await create_api_key(harness.client.store, user_id, "contract", ["read", "write"])
            client = HttpClient(gateway.url, key.secret)
            clients.append(await stack.enter_async_context(client))
        yield Clients(harness, *clients)
