"""The tools of servers of the Model Context Protocol, as an agent's own."""

import asyncio
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from agent.spec import McpServer
from events.actions import MCPToolAction
from events.content import ToolDefinition
from events.observations import MCPToolObservation
from tools.catalog import CatalogError, ToolNotFound
from tools.mcp.arguments import parser
from tools.mcp.definitions import beginning, definition_of
from tools.mcp.failures import Interrupted, Malformed, McpFailure
from tools.mcp.pool import Place, SessionPool
from tools.tool import Context, Tool, ToolFailed

if TYPE_CHECKING:
    from mcp_types import CallToolResult
    from mcp_types import Tool as McpTool

LIMIT = 64
"""Sessions of a worker; beyond it, the one that was unused for longest is ended."""

IDLE = 900.0
"""Seconds without a call after which a session is ended."""

Offers: TypeAlias = "dict[str, tuple[McpTool, ToolDefinition]]"
"""What a server offers, by the names that the model knows."""


class McpUnavailable(CatalogError):
    """A server cannot be used; the text says why."""


class OutcomeUnknown(ToolFailed):
    """A tool was called and gave no answer: it may have done its deed, or not."""


class McpSessions:
    """What servers offer, through sessions that are opened when needed and kept while in use.

    One session for each conversation and server: what a server remembers (a page, a transaction,
    who logged in) is nobody else's. One that is lost is opened again by the next call.
    """

    def __init__(self, limit: int = LIMIT, idle: float = IDLE) -> None:
        self._pool = SessionPool(limit, idle)

    @property
    def open(self) -> int:
        """How many sessions there are now."""
        return self._pool.open

    async def tools(
        self, conversation_id: str, servers: tuple[McpServer, ...], workspace: Path
    ) -> list[Tool]:
        """What the servers offer now, server by server. Raises CatalogError."""
        _check(servers)
        places = [Place(conversation_id, workspace, server) for server in servers]
        found: list[Tool] = []
        for server, tools in zip(
            servers, await asyncio.gather(*map(self._listed, places)), strict=True
        ):
            _check_included(server, tools)
            for _, definition in _chosen(server, tools).values():
                found.append(self.tool(conversation_id, servers, workspace, definition))
        return found

    def tool(
        self,
        conversation_id: str,
        servers: tuple[McpServer, ...],
        workspace: Path,
        definition: ToolDefinition,
    ) -> Tool:
        """The tool of a definition that the log holds; its server is asked when it runs."""

        async def run(action: MCPToolAction, context: Context) -> MCPToolObservation:
            place = Place(conversation_id, workspace, _owner(servers, definition.name))
            return await self._run(place, definition, action, context)

        return Tool(definition, parser(definition), run)

    async def changed(
        self,
        conversation_id: str,
        servers: tuple[McpServer, ...],
        workspace: Path,
        recorded: Sequence[ToolDefinition],
    ) -> list[ToolDefinition] | None:
        """What the servers offer now, where it is not what was `recorded` of them; else None.

        A server without an open session is not asked: it counts as it was recorded. Raises
        CatalogError.
        """
        now: list[ToolDefinition] = []
        for server in servers:
            place = Place(conversation_id, workspace, server)
            if self._pool.is_open(place):
                now += [definition for _, definition in (await self._offers(place)).values()]
            else:
                start = beginning(server.name)
                now += [one for one in recorded if one.name.startswith(start)]
        return now if now != list(recorded) else None

    def forget(self, conversation_id: str) -> None:
        """End the sessions of a conversation."""
        self._pool.end(conversation_id)

    async def close(self) -> None:
        """End every session; the servers that were started are gone when this returns."""
        await self._pool.close()

    async def _offers(self, place: Place) -> Offers:
        return _chosen(place.server, await self._listed(place))

    async def _listed(self, place: Place) -> "list[McpTool]":
        try:
            return await self._pool.ask(place, lambda session: session.tools())
        except McpFailure as error:
            name = place.server.name
            raise McpUnavailable(f"MCP server {name!r} cannot be used: {error}.") from error

    async def _run(
        self, place: Place, definition: ToolDefinition, action: MCPToolAction, context: Context
    ) -> MCPToolObservation:
        try:
            offers = await self._offers(place)
        except McpUnavailable as error:
            raise ToolFailed(str(error)) from error
        if definition.name not in offers:
            raise ToolFailed(
                f"MCP server {place.server.name!r} does not offer {definition.name} any more. It "
                f"has {', '.join(offers) or 'no tools at all'}."
            )
        tool, current = offers[definition.name]
        repeatable = definition.annotations.repeatable and current.annotations.repeatable
        result = await self._result(place, tool.name, action.data, context, repeatable)
        from tools.mcp.results import observed  # late, as everything that knows the library

        return await observed(definition.name, result, context)

    async def _result(
        self,
        place: Place,
        name: str,
        arguments: dict[str, Any],
        context: Context,
        repeatable: bool,
    ) -> "CallToolResult":
        error: McpFailure
        try:
            async with asyncio.timeout(place.server.call_timeout):
                return await self._pool.ask(
                    place,
                    lambda session: session.call(name, arguments, context.progress),
                    repeatable,
                )
        except TimeoutError:
            error = Interrupted(f"it gave no answer within {place.server.call_timeout:g} s")
        except McpFailure as failure:
            error = failure
        told = f"MCP server {place.server.name!r} gave no result: {error}."
        if isinstance(error, Interrupted | Malformed) and not repeatable:
            raise OutcomeUnknown(
                f"{told} The outcome of this call is unknown. It may have taken effect, in whole "
                "or in part: check before repeating it."
            ) from error
        raise ToolFailed(told) from error


def _chosen(server: McpServer, tools: "Sequence[McpTool]") -> Offers:
    offers = [
        (tool, definition_of(server, tool))
        for tool in tools
        if tool.name in server.include or not server.include
    ]
    return {definition.name: (tool, definition) for tool, definition in offers}


def _owner(servers: Sequence[McpServer], name: str) -> McpServer:
    for server in servers:
        if name.startswith(beginning(server.name)):
            return server
    raise ToolFailed(f"{name} is gone: its MCP server does not belong to this conversation.")


def _check(servers: Sequence[McpServer]) -> None:
    for server in servers:
        if bool(server.command) == bool(server.url):
            raise McpUnavailable(
                f"MCP server {server.name!r} needs either a `command` to start or a `url` to ask."
            )
    for one, other in itertools.permutations(servers, 2):
        if beginning(one.name).startswith(beginning(other.name)):
            raise McpUnavailable(
                f"MCP servers {one.name!r} and {other.name!r} would have tools of the same name: "
                "rename one of them."
            )


def _check_included(server: McpServer, tools: "Sequence[McpTool]") -> None:
    names = [tool.name for tool in tools]
    for name in server.include:
        if name not in names:
            raise ToolNotFound(
                f"MCP server {server.name!r} has no tool {name!r} to include. It has "
                f"{', '.join(names) or 'none at all'}."
            )
