"""Task queues for rate-limited models."""

from perdure.agent.loop.steps import Condense, GenerateTitle, Open, Step, Think
from perdure.agent.spec import Agent, PipelineCondenser, SummaryCondenser

WRONG_QUEUE = "Elsewhere"
"""The failure type of a step taken from the wrong queue, before any work was done.

Its details are the name of the model and the right queue.
"""

REROUTED_SUFFIX = "+"
"""The suffix of a rerouted step's id: the step before it may have done the work already."""


def model_queue_name(task_queue: str, model: str) -> str:
    """Return the name of a model's queue among the workers of a task queue."""
    return f"{task_queue}%{model}"


def first_model(step: Step | Open, spec: Agent) -> str | None:
    """Return the name of the model that a step asks first, or None if it asks none."""
    match step:
        case Think():
            return spec.model.name
        case GenerateTitle():
            return spec.title_model.name if spec.title_model else None
        case Condense():
            return _summary_model(spec)
        case _:
            return None


def _summary_model(spec: Agent) -> str | None:
    condenser = spec.condenser
    condensers = condenser.condensers if isinstance(condenser, PipelineCondenser) else (condenser,)
    for condenser in condensers:
        if isinstance(condenser, SummaryCondenser):
            return (condenser.model or spec.model).name
    return None
