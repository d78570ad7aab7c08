"""The user's modules that an agent needs."""

from collections.abc import Iterator

from perdure.agent.spec import Agent, CustomCondenser, PipelineCondenser
from perdure.references import is_reference

MODEL_PREFIX = "python:"


def with_code(agent: Agent, folder: str | None) -> Agent:
    """Add the folder of its modules to an agent that refers to any."""
    if agent.code is not None or folder is None or not any(_references(agent)):
        return agent
    return agent.model_copy(update={"code": folder})


def _references(agent: Agent) -> Iterator[str]:
    yield from filter(is_reference, (*agent.tools, *agent.analyzers))
    models = (agent.model, *agent.fallbacks)
    yield from (model.name for model in models if model.name.startswith(MODEL_PREFIX))
    condenser = agent.condenser
    parts = condenser.condensers if isinstance(condenser, PipelineCondenser) else (condenser,)
    yield from (part.function for part in parts if isinstance(part, CustomCondenser))
