"""The responses about agents and models that an installation offers."""

from perdure.events.base import Tolerant


class NamedAgent(Tolerant):
    """An agent that conversations may name as their `agent`; `default` is the one of all others.

    What else the installation says of it is its own, such as its prompt and its MCP servers.
    """

    name: str
    model: str
    tools: tuple[str, ...]


class NamedAgents(Tolerant):
    """`GET /v1/agents`."""

    items: tuple[NamedAgent, ...]


class Models(Tolerant):
    """`GET /v1/models`: the models that agents may name.

    `patterns` are those of further names, as in a shell; `["*"]` allows all.
    """

    items: tuple[str, ...]
    default: str | None = None
    patterns: tuple[str, ...] = ()
