"""The places in which a command finds named agents."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from perdure.cli.environment import find_environment
from perdure.client.agents.sources import AgentSources, default_folders
from perdure.client.store import open_configured_store
from perdure.errors import Unreachable
from perdure.settings.settings import load_settings
from perdure.storage.open import open_store_for_reading
from perdure.storage.user_agents import UserAgents


@asynccontextmanager
async def open_agent_sources() -> AsyncIterator[AgentSources]:
    """Open the places of named agents: without servers those on this machine alone."""
    try:
        settings = (await find_environment()).settings
    except Unreachable:
        yield AgentSources(load_settings(), default_folders())
        return
    if settings.gateway is not None:
        yield AgentSources(settings, default_folders())
        return
    store = open_configured_store(settings, open_store_for_reading)
    try:
        yield AgentSources(settings, default_folders(), UserAgents(store, settings.user))
    finally:
        await store.close()
