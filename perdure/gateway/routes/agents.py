"""The agents and models that an installation offers."""

from fastapi import APIRouter

from perdure.api.agents import Models, NamedAgent, NamedAgents
from perdure.gateway.callers import Reader

router = APIRouter(prefix="/v1", tags=["agents"])


@router.get("/agents")
async def list_agents(caller: Reader) -> NamedAgents:
    """List the agents that a conversation may name."""
    agents = caller.gateway.agents.agents
    return NamedAgents(
        items=tuple(
            NamedAgent(name=name, model=agent.model.name, tools=agent.tools)
            for name, agent in agents.items()
        )
    )


@router.get("/models")
async def list_models(caller: Reader) -> Models:
    """List the models that an agent may name."""
    policy = caller.gateway.agents.policy
    return Models(
        items=policy.models, default=caller.gateway.settings.model, patterns=tuple(policy.patterns)
    )
