"""The agents of the installation and of the user, as models."""

from typing import Any

from perdure.agent.named import DEFAULT_AGENT
from perdure.agent.spec import Agent
from perdure.api.conversations import Start
from perdure.client.agents.sources import find_own
from perdure.gateway.agents.own_secrets import agent_user, list_own_secrets
from perdure.gateway.openai.call import Call
from perdure.gateway.openai.errors import BadRequest
from perdure.storage.user_agents import UserAgents

OWNER = "perdure"


def model_object(name: str, owner: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": owner}


async def list_models(call: Call) -> list[dict[str, Any]]:
    """List the agents that a request may name: the installation's, and the user's own."""
    own = await UserAgents(call.gateway.store, call.user_id).list_names()
    offered = [name for name in call.gateway.agents.list_names() if name not in own]
    installed = [model_object(name, OWNER) for name in offered]
    return [*installed, *(model_object(name, call.user_id) for name in own)]


async def require_model(call: Call, name: str) -> str:
    """Return the owner of an agent. Raises BadRequest with the status 404 where there is none."""
    if await find_own(UserAgents(call.gateway.store, call.user_id), name) is not None:
        return call.user_id
    if name not in call.gateway.agents.list_names():
        raise BadRequest(
            f"There is no agent {name}: GET /openai/v1/models lists those that there are.",
            "model",
            "model_not_found",
            404,
        )
    return OWNER


async def choose_agent(
    call: Call,
    name: str,
    instructions: str | None = None,
    tags: tuple[str, ...] = (),
    *,
    hidden: bool = False,
) -> Agent:
    """Return the agent of a name with what a request says over it. Raises BadRequest, Invalid."""
    await require_model(call, name)
    agents, client = call.gateway.agents, call.caller.client
    agent = await agents.choose(agent_user(client), name, None)
    start = Start(instructions=instructions, hidden=True if hidden else None)
    agent = agents.apply(agent, start, await list_own_secrets(client, agent, start))
    return agent.model_copy(update={"tags": tags}) if tags else agent


def name_agent(agent: Agent) -> str:
    """Return the name by which a request names an agent."""
    return agent.agent or DEFAULT_AGENT
