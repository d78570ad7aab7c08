"""The agents and the secrets of the user of a request."""

from collections.abc import Collection
from functools import partial

from perdure.agent.spec import Agent
from perdure.agent.start_fields import StartFields
from perdure.client.client import Client
from perdure.gateway.agents.catalog import AgentUser
from perdure.gateway.agents.policy import list_secrets
from perdure.storage.user_agents import UserAgents


def agent_user(client: Client) -> AgentUser:
    return AgentUser(UserAgents(client.store, client.user_id), partial(list_names, client))


async def list_own_secrets(
    client: Client, agent: Agent, start: StartFields | None = None
) -> Collection[str]:
    """List the names of the user's secrets, if the agent or the start names any secret at all."""
    started = start is not None and (start.secrets or start.repository_token)
    return await list_names(client) if any(list_secrets(agent).values()) or started else ()


async def list_names(client: Client) -> Collection[str]:
    return {secret.name for secret in await client.list_secrets()}
