"""The agent of a new session: its folder, its MCP servers, and its mode."""

import re
from collections.abc import Iterable
from typing import Any, Protocol

from perdure.acp.requests import HttpServer, Pair, Server, StdioServer
from perdure.agent.extensions import McpServer
from perdure.agent.policies import Confirmation
from perdure.agent.spec import Agent
from perdure.client.http.remote_agent import RemoteAgent
from perdure.client.protocol import ConversationClient

FOLDER_TAG = "cwd:"
"""Begins the tag that names the folder of a session."""

MAX_TAG_CHARS = 250


class Host(Protocol):
    """The place of the conversations, and what agents they have."""

    async def connect(self) -> ConversationClient:
        """Return the client of the user. Raises ClientError where nothing runs."""
        ...

    async def build_agent(self, cwd: str) -> Agent:
        """Build the agent of a session in a folder, which is its workspace where it can be.

        Raises ClientError.
        """
        ...

    @property
    def is_local(self) -> bool:
        """Tell whether the worker is on this machine, with its files and programs."""
        ...


def extend_agent(agent: Agent, **fields: Any) -> Agent:
    """Return the agent with other fields, also that which a gateway alone knows whole."""
    extended = agent.model_copy(update=fields)
    if not isinstance(extended, RemoteAgent):
        return extended
    dumped = extended.model_dump(mode="json", include=set(fields))
    return extended.model_copy(update={"request": {**extended.request, **dumped}})


def set_folder(agent: Agent, cwd: str) -> Agent:
    """Have a conversation found by its folder."""
    return extend_agent(agent, tags=with_folder(agent.tags, cwd))


def with_folder(tags: Iterable[str], cwd: str) -> tuple[str, ...]:
    """Return tags that name the folder, unless its path is too long for one."""
    others = [tag for tag in tags if not tag.startswith(FOLDER_TAG)]
    tag = FOLDER_TAG + cwd
    return (*others, tag) if len(tag) <= MAX_TAG_CHARS else tuple(others)


def find_folder(tags: Iterable[str], workspace: str | None) -> str:
    """Return the folder of a conversation; the root for one that has none."""
    named = (tag.removeprefix(FOLDER_TAG) for tag in tags if tag.startswith(FOLDER_TAG))
    return next(named, workspace or "/")


def set_confirmation(agent: Agent, confirmation: Confirmation) -> Agent:
    return extend_agent(agent, confirmation=confirmation)


def add_servers(agent: Agent, servers: Iterable[Server], is_local: bool) -> Agent:
    """Give an agent the editor's MCP servers, beside its own.

    Programs are started by the worker, so that they are left out where it is on another machine.
    """
    wanted = [each for each in servers if is_local or isinstance(each, HttpServer)]
    own = {server.name for server in agent.mcp}
    added = [server for server in map(convert_server, wanted) if server.name not in own]
    return extend_agent(agent, mcp=(*agent.mcp, *added)) if added else agent


def convert_server(server: Server) -> McpServer:
    """Return an MCP server as agents have it; its tools are called as it, so its name is a word."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", server.name).strip("-") or "server"
    match server:
        case StdioServer():
            values = _read_pairs(server.env)
            return McpServer(name=name, command=server.command, args=server.args, env_values=values)
        case HttpServer():
            return McpServer(name=name, url=server.url, header_values=_read_pairs(server.headers))


def _read_pairs(pairs: Iterable[Pair]) -> dict[str, str]:
    return {pair.name: pair.value for pair in pairs}
