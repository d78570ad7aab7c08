"""The requests and responses about agents, models and a user's settings of agents."""

from perdure.api.json_object import JsonObject
from perdure.events.base import Frozen, Tolerant


class ListedAgent(Tolerant):
    """An agent that conversations may name as their `agent`; `default` is the one of all others.

    Of an agent of the installation what else is said is its own, such as its prompt and its MCP
    servers.
    """

    name: str
    model: str | None
    """None if a start has to name it."""
    tools: tuple[str, ...] = ()
    description: str = ""
    own: bool = False
    """Whether it is the user's own, and not the installation's."""
    definition: JsonObject | None = None
    """What the user has said of an agent of their own."""
    problem: str | None = None
    """Why an agent of the user's own cannot be started any more."""


class ListedAgents(Tolerant):
    """`GET /v1/agents`."""

    items: tuple[ListedAgent, ...]


class UserSettings(Frozen):
    """`/v1/settings`: what the user says of all agents, stronger than named agents."""

    agent: JsonObject


class Models(Tolerant):
    """`GET /v1/models`: the models that agents may name.

    `patterns` are those of further names, as in a shell; `["*"]` allows all.
    """

    items: tuple[str, ...]
    default: str | None = None
    patterns: tuple[str, ...] = ()
