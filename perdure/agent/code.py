"""The user's modules that an agent needs."""

from collections.abc import Iterator

from perdure.agent.spec import Agent
from perdure.agent.view.condense.thresholds import custom_condensers
from perdure.references import is_reference

MODEL_PREFIX = "python:"

BUILT_IN_ANALYZERS = ("model", "rules")


def with_code(agent: Agent, folder: str | None) -> Agent:
    """Add the folder of its modules to an agent that refers to any."""
    if agent.code is not None or folder is None or not any(_references(agent)):
        return agent
    return agent.model_copy(update={"code": folder})


def _references(agent: Agent) -> Iterator[str]:
    yield from filter(is_reference, (*agent.tools, *agent.analyzers))
    models = (agent.model, *agent.fallbacks)
    yield from (model.name for model in models if model.name.startswith(MODEL_PREFIX))
    yield from (condenser.function for condenser in custom_condensers(agent.condenser))
    for delegate in agent.delegates:
        yield from _references(delegate.agent)


def custom_analyzers(agent: Agent) -> Iterator[str]:
    """Name the agent's own analyzers."""
    yield from (name for name in agent.analyzers if name not in BUILT_IN_ANALYZERS)
