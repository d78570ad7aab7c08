"""The agents and models that an installation offers, and those that users keep."""

import json
from typing import Annotated

from fastapi import APIRouter, Body, Path, Request

from perdure.agent.layers import Fields
from perdure.agent.named import Definition, check_definition
from perdure.agent.spec import Agent
from perdure.api.agents import ListedAgent, ListedAgents, Models, UserSettings
from perdure.api.json_object import JsonObject
from perdure.client.agents.sources import own_definition
from perdure.errors import Conflict, Invalid, NotFound
from perdure.gateway.agents.own_secrets import agent_user
from perdure.gateway.callers import Caller, Reader, Writer
from perdure.gateway.edge.audit import audit
from perdure.storage.user_agents import MAX_AGENTS, UserAgents

router = APIRouter(prefix="/v1", tags=["agents"])

MAX_TABLE_CHARS = 256 * 1024
"""Characters of an agent that a user keeps, as JSON."""

AgentName = Annotated[str, Path(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


@router.get("/agents")
async def list_agents(caller: Reader) -> ListedAgents:
    """List the agents that a conversation may name: the user's own, and the installation's."""
    agents = _own_agents(caller)
    names = await agents.list_names()
    own = [shown for name in names if (shown := await _show_own(caller, agents, name))]
    offered = [_show_offered(caller, name) for name in _offered_names(caller) if name not in names]
    return ListedAgents(items=(*offered, *own))


@router.get("/agents/{name}")
async def get_agent(name: AgentName, caller: Reader) -> ListedAgent:
    """Show an agent: of the user's own, also what it says."""
    if (own := await _show_own(caller, _own_agents(caller), name)) is not None:
        return own
    if name not in _offered_names(caller):
        raise NotFound(f"There is no agent {name}.", "GET /v1/agents lists those that there are.")
    return _show_offered(caller, name)


@router.put("/agents/{name}")
async def put_agent(
    request: Request, name: AgentName, body: Annotated[JsonObject, Body()], caller: Writer
) -> ListedAgent:
    """Keep an agent of the user's own, in place of an earlier one of its name.

    The body is a table of an agent's fields; `extends` names the agent of which it takes all
    others, and `description` says what it is good for. It comes before the installation's.
    """
    agents = _own_agents(caller)
    if (size := len(json.dumps(body))) > MAX_TABLE_CHARS:
        raise Invalid(f"An agent has at most {MAX_TABLE_CHARS:,} characters, and not {size:,}.")
    if not body:
        raise Invalid("The agent says nothing.", "Give a field of an agent, or `extends`.")
    definition = check_definition(own_definition(name, body))
    agent = await caller.gateway.agents.check_own(agent_user(caller.client), definition)
    if await agents.load(name) is None and len(await agents.list_names()) >= MAX_AGENTS:
        raise Conflict(f"A user may have {MAX_AGENTS} agents.", "Delete one first.")
    await agents.save(name, body)
    audit(request, "agent.put", agent=name)
    return _show(definition, agent, body)


@router.delete("/agents/{name}", status_code=204)
async def delete_agent(request: Request, name: AgentName, caller: Writer) -> None:
    """Delete an agent of the user's own; conversations keep theirs."""
    agents = _own_agents(caller)
    if await agents.load(name) is None:
        raise NotFound(f"You have no agent {name} of your own.")
    await agents.delete(name)
    audit(request, "agent.delete", agent=name)


@router.get("/settings")
async def get_settings(caller: Reader) -> UserSettings:
    """Show what the user says of all agents."""
    return UserSettings(agent=await _own_agents(caller).load_settings())


@router.put("/settings")
async def put_settings(request: Request, body: UserSettings, caller: Writer) -> UserSettings:
    """Say something of all agents that are started by a name, or by none; `{}` says nothing.

    It is stronger than what named agents and the installation say.
    """
    agents = _own_agents(caller)
    await caller.gateway.agents.check_settings(agent_user(caller.client), body.agent)
    await agents.save_settings(body.agent)
    audit(request, "settings.put", fields=sorted(body.agent))
    return body


@router.get("/models")
async def list_models(caller: Reader) -> Models:
    """List the models that an agent may name."""
    policy = caller.gateway.agents.policy
    return Models(
        items=policy.models, default=caller.gateway.settings.model, patterns=tuple(policy.patterns)
    )


def _own_agents(caller: Caller) -> UserAgents:
    return UserAgents(caller.gateway.store, caller.client.user_id)


def _offered_names(caller: Caller) -> list[str]:
    catalog = caller.gateway.agents
    return list(dict.fromkeys((*catalog.agents, *catalog.offer.definitions)))


def _show_offered(caller: Caller, name: str) -> ListedAgent:
    catalog = caller.gateway.agents
    agent = catalog.agents.get(name)
    definition = catalog.offer.definitions.get(name)  # the default agent has none
    return ListedAgent(
        name=name,
        model=agent.model.name if agent else None,
        tools=agent.tools if agent else (),
        description=definition.description if definition else "",
    )


async def _show_own(caller: Caller, agents: UserAgents, name: str) -> ListedAgent | None:
    table = await agents.load(name)
    if table is None:
        return None
    definition = own_definition(name, table)
    try:
        check_definition(definition)
        agent = await caller.gateway.agents.check_own(agent_user(caller.client), definition)
    except Invalid as error:  # what it extends may have changed
        return _show(definition, None, definition.table, str(error))
    return _show(definition, agent, definition.table)


def _show(
    definition: Definition, agent: Agent | None, table: Fields, problem: str | None = None
) -> ListedAgent:
    return ListedAgent(
        name=definition.name,
        model=agent.model.name if agent else None,
        tools=agent.tools if agent else (),
        description=definition.description,
        own=True,
        definition=dict(table),
        problem=problem,
    )
