"""Tools of MCP servers as tools of an agent."""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from perdure.agent.extensions import McpServer
from perdure.events.actions import MCPToolAction
from perdure.events.content import ToolDefinition
from perdure.events.observations import MCPToolObservation
from perdure.tools.errors import CatalogError, ToolNotFound
from perdure.tools.mcp.definitions import fit_arguments, make_definition, name_prefix
from perdure.tools.mcp.failures import McpFailure, ProtocolViolation, SessionLost
from perdure.tools.mcp.pool import SessionPool, SessionTarget
from perdure.tools.tool import Context, Tool, ToolFailed

if TYPE_CHECKING:
    from mcp_types import CallToolResult
    from mcp_types import Tool as McpTool

OnStarting: TypeAlias = Callable[[Sequence[str]], None]
"""A callback that receives the names of the servers that have not answered yet, if any."""

Offers: TypeAlias = "dict[str, tuple[McpTool, ToolDefinition]]"
"""A server's tools with their definitions, by the names that the model knows."""


class McpUnavailable(CatalogError):
    """A server cannot be used; the text says why."""


class OutcomeUnknown(ToolFailed):
    """A called tool gave no answer: it may have taken effect or not."""


class McpSessions(SessionPool):
    """The sessions with MCP servers, opened on demand and kept while in use.

    Each conversation has its own session with each server: a server's state (a page, a
    transaction, a login) is not shared. The next call reopens a session that was lost.
    """

    async def list_tools(
        self,
        conversation: str,
        servers: tuple[McpServer, ...],
        workspace: Path,
        report: OnStarting = lambda _: None,
    ) -> list[Tool]:
        """List the tools that the servers offer now, server by server. Raises CatalogError.

        `report` is called with the names of the servers that have not answered yet, if any.
        """
        _check_servers(servers)
        targets = [SessionTarget(conversation, workspace, server) for server in servers]
        waiting = [target.server.name for target in targets if not self.is_open(target)]

        async def list_tools(target: SessionTarget) -> "list[McpTool]":
            tools = await self._list_tools(target)
            if target.server.name in waiting:
                waiting.remove(target.server.name)
                report(waiting)
            return tools

        report(waiting)
        listings = await asyncio.gather(*map(list_tools, targets))
        tools: list[Tool] = []
        for server, listed in zip(servers, listings, strict=True):
            _check_included(server, listed)
            definitions = [definition for _, definition in _select_tools(server, listed).values()]
            tools += [self.make_tool(conversation, servers, workspace, d) for d in definitions]
        return tools

    def make_tool(
        self,
        conversation: str,
        servers: tuple[McpServer, ...],
        workspace: Path,
        definition: ToolDefinition,
    ) -> Tool:
        """Make the tool of a recorded definition; only running it contacts the server."""

        async def run(action: MCPToolAction, context: Context) -> MCPToolObservation:
            server = _find_server(servers, definition.name)
            target = SessionTarget(conversation, workspace, server)
            return await self._run(target, definition, action, context)

        def parse(arguments: dict[str, Any]) -> MCPToolAction:
            return MCPToolAction(data=fit_arguments(definition.parameters, arguments))

        return Tool(definition, parse, run)

    async def find_changes(
        self,
        conversation: str,
        servers: tuple[McpServer, ...],
        workspace: Path,
        recorded: Sequence[ToolDefinition],
    ) -> list[ToolDefinition] | None:
        """Return the servers' current definitions if they differ from `recorded`, else None.

        A server without an open session counts as unchanged. Raises CatalogError.
        """
        current: list[ToolDefinition] = []
        for server in servers:
            target = SessionTarget(conversation, workspace, server)
            if self.is_open(target):
                current += [offered for _, offered in (await self._load_offers(target)).values()]
            else:
                prefix = name_prefix(server.name)
                current += [known for known in recorded if known.name.startswith(prefix)]
        return current if current != list(recorded) else None

    async def _load_offers(self, target: SessionTarget) -> Offers:
        return _select_tools(target.server, await self._list_tools(target))

    async def _list_tools(self, target: SessionTarget) -> "list[McpTool]":
        try:
            return await self.request(target, lambda session: session.list_tools())
        except McpFailure as error:
            name = target.server.name
            raise McpUnavailable(f"MCP server {name!r} cannot be used: {error}.") from error

    async def _run(
        self,
        target: SessionTarget,
        definition: ToolDefinition,
        action: MCPToolAction,
        context: Context,
    ) -> MCPToolObservation:
        try:
            offers = await self._load_offers(target)
        except McpUnavailable as error:
            raise ToolFailed(str(error)) from error
        if definition.name not in offers:
            raise ToolFailed(
                f"MCP server {target.server.name!r} does not offer {definition.name} any more. It "
                f"has {', '.join(offers) or 'no tools at all'}."
            )
        tool, current = offers[definition.name]
        repeatable = definition.annotations.repeatable and current.annotations.repeatable
        result = await self._call_tool(target, tool.name, action.data, context, repeatable)
        # Imported late, like every module that imports the MCP library.
        from perdure.tools.mcp.results import to_observation

        return await to_observation(definition.name, result, context)

    async def _call_tool(
        self,
        target: SessionTarget,
        name: str,
        arguments: dict[str, Any],
        context: Context,
        repeatable: bool,
    ) -> "CallToolResult":
        error: McpFailure
        try:
            async with asyncio.timeout(target.server.call_timeout):
                return await self.request(
                    target,
                    lambda session: session.call(name, arguments, context.progress),
                    repeatable,
                )
        except TimeoutError:
            error = SessionLost(f"it gave no answer within {target.server.call_timeout:g} s")
        except McpFailure as failure:
            error = failure
        message = f"MCP server {target.server.name!r} gave no result: {error}."
        if isinstance(error, SessionLost | ProtocolViolation) and not repeatable:
            raise OutcomeUnknown(
                f"{message} The outcome of this call is unknown. It may have taken effect, in "
                "whole or in part: check before repeating it."
            ) from error
        raise ToolFailed(message) from error


def _select_tools(server: McpServer, tools: "Sequence[McpTool]") -> Offers:
    included = [tool for tool in tools if tool.name in server.include or not server.include]
    offers = [(tool, make_definition(server, tool)) for tool in included]
    return {definition.name: (tool, definition) for tool, definition in offers}


def _find_server(servers: Sequence[McpServer], name: str) -> McpServer:
    for server in servers:
        if name.startswith(name_prefix(server.name)):
            return server
    raise ToolFailed(f"{name} is gone: its MCP server does not belong to this conversation.")


def _check_servers(servers: Sequence[McpServer]) -> None:
    for server in servers:
        if bool(server.command) == bool(server.url):
            raise McpUnavailable(
                f"MCP server {server.name!r} needs either a `command` to start or a `url` to ask."
            )
    for first, second in itertools.permutations(servers, 2):
        if name_prefix(first.name).startswith(name_prefix(second.name)):
            raise McpUnavailable(
                f"MCP servers {first.name!r} and {second.name!r} would have tools of the same "
                "name: rename one of them."
            )


def _check_included(server: McpServer, tools: "Sequence[McpTool]") -> None:
    names = [tool.name for tool in tools]
    if missing := [name for name in server.include if name not in names]:
        raise ToolNotFound(
            f"MCP server {server.name!r} has no tool {missing[0]!r} to include. It has "
            f"{', '.join(names) or 'none at all'}."
        )
