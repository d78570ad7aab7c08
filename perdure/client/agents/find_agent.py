"""The agent that a program starts, by its name or as it is."""

from collections.abc import Mapping
from typing import Any

from perdure.agent.fields import plain_fields
from perdure.agent.named import EXTENDS, require_extended
from perdure.agent.resolve import resolve_agent, start_layer
from perdure.agent.spec import Agent
from perdure.client.agents.sources import AgentSources, default_folders
from perdure.settings.settings import Settings, load_settings
from perdure.storage.user_agents import UserAgents


async def find_agent(
    spec: Agent | Mapping[str, Any] | str, settings: Settings | None, agents: UserAgents
) -> Agent:
    """Find the agent of a start: itself, by its name, or fields that extend a named one.

    Raises Invalid, Altered, StoreUnavailable.
    """
    if isinstance(spec, Agent):
        return spec
    name = spec if isinstance(spec, str) else require_extended(spec)
    fields = plain_fields(spec) if isinstance(spec, Mapping) else {}
    fields.pop(EXTENDS, None)
    sources = AgentSources(settings or load_settings(), default_folders(), agents)
    arguments = [start_layer(fields)]
    return resolve_agent(name, arguments, await sources.load_offer(name, arguments)).agent
