"""The command that serves conversations over MCP."""

from typing import Any

from mcp.server.mcpserver import Context

from perdure.agent.named import DEFAULT_AGENT
from perdure.api.keys import Scope
from perdure.cli.declarations.gateway import Mcp
from perdure.cli.environment import connect_client
from perdure.client.protocol import ConversationClient, ConversationHandle
from perdure.gateway.mcp.server import build_server


class TerminalHost:
    """The conversations of the user of this terminal."""

    def __init__(self, client: ConversationClient, agent: str) -> None:
        self._client = client
        self._agent = agent

    def client(self, context: Context[Any], scope: Scope) -> ConversationClient:  # noqa: ARG002
        return self._client

    async def start(
        self,
        context: Context[Any],  # noqa: ARG002
        task: str,
        agent: str | None,
        conversation_id: str,
        message_id: str,
    ) -> ConversationHandle:
        name = agent or self._agent
        return await self._client.start(task, name, conversation_id, message_id)


async def mcp(options: Mcp) -> None:
    """Serve until the end of stdin; nothing but messages goes to stdout."""
    host = TerminalHost(await connect_client(), options.agent or DEFAULT_AGENT)
    await build_server(host).run_stdio_async()
