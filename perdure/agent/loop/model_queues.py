"""Task queues for rate-limited models."""

from perdure.agent.loop.steps import Condense, GenerateTitle, Open, Step, Think
from perdure.agent.spec import Agent, SummaryCondenser
from perdure.agent.view.condense.thresholds import flatten_condenser

WRONG_QUEUE = "Elsewhere"
"""The failure type of a step from the wrong queue, with the model's name and the right queue."""

GRADED = "Graded"
"""The failure type of scoring on a model's queue, once only scorers of the workspace are left."""

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
            condensers = flatten_condenser(spec.condenser)
            summarizers = (it for it in condensers if isinstance(it, SummaryCondenser))
            return next(((it.model or spec.model).name for it in summarizers), None)
        case _:
            return None
