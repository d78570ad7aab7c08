"""The things that some agents start with: a clone, secrets of their user, two MCP servers."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from perdure.agent.extensions import McpServer
from perdure.agent.spec import Agent
from perdure.secrets.vault import Vault
from perdure.storage.store import Store
from perdure.testing.server import serve_app
from reliability.chaos.load.conversations import make_agent
from reliability.crashes.scenario import SECRETS
from tests import mcp_server
from tests.git_server import serve_git
from tests.secrets.keys import key_ring, key_setting

KEY = "chaos"
"""The name of the key that encrypts secrets."""

SECRET_KEYS = key_setting(KEY)

README = "What is read here was cloned."
TOKEN_NAME = "SECRET_1"
"""The secret that opens the repository."""


@dataclass(frozen=True)
class Equipment:
    """The URLs of the repository, and of the MCP server that runs already."""

    repository: str
    server: str


@asynccontextmanager
async def equip(store: Store, user_id: str, folder: Path) -> AsyncIterator[Equipment]:
    """Hand in the secrets of the user, and serve a repository in `folder` and an MCP server."""
    vault = Vault(store, user_id, key_ring(KEY))
    for name, value in SECRETS.items():
        await vault.put(name, value, f"what {name} is for")
    repositories = folder / "repositories"
    repositories.mkdir()
    server = mcp_server.make()
    app = server.streamable_http_app()
    with serve_git(repositories) as git:
        files = {"README": f"{README}\n", "AGENTS.md": "Be brief."}
        repository = git.create("private/project", files)
        async with server.session_manager.run(), serve_app(app) as address:
            yield Equipment(repository, f"{address}/mcp")


def make_equipped_agent(model: str, address: str, equipment: Equipment) -> Agent:
    """Return an agent that starts with all of it: one MCP server it starts, the other it asks."""
    agent = make_agent(model, address)
    ours = {"include": ("add",), "trusted": True}
    servers = (
        McpServer(name="one", command=sys.executable, args=(mcp_server.__file__,), **ours),
        McpServer(name="two", url=equipment.server, **ours),
    )
    more = ("reliability.chaos.state_tools:TOOLS", "terminal", "state", "remember", "recall")
    changes = {
        "tools": (*agent.tools, *more),
        "mcp": servers,
        "secrets": tuple(SECRETS),
        "repository": equipment.repository,
        "repository_token": TOKEN_NAME,
    }
    return agent.model_copy(update=changes)
