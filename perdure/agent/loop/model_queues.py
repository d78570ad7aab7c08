"""Task queues for rate-limited models, and for workers that only ask models or run tools."""

from perdure.agent.loop.steps import (
    Act,
    CloneRepository,
    Condense,
    Delegate,
    GenerateTitle,
    Open,
    Prepare,
    Report,
    SetUp,
    Step,
    Think,
)
from perdure.agent.spec import Agent, SummaryCondenser
from perdure.agent.view.condense.thresholds import flatten_condenser

WRONG_QUEUE = "Elsewhere"
"""The failure type of a step from the wrong queue, with its key and the right queue."""

GRADED = "Graded"
"""The failure type of scoring on a model's queue, once only scorers of the workspace are left."""

REROUTED_SUFFIX = "+"
"""The suffix of a rerouted step's id: the step before it may have done the work already."""


TOOLS = "*tools"
"""The key of the queue of steps that work in a workspace; the keys of others are models' names."""


def llm_queue_name(task_queue: str) -> str:
    """Return the name of the queue of workers that ask models, among those of a task queue."""
    return f"{task_queue}-llm"


def tools_queue_name(task_queue: str) -> str:
    """Return the name of the queue of workers that run tools, among those of a task queue."""
    return f"{task_queue}-tools"


def model_queue_name(task_queue: str, model: str) -> str:
    """Return the name of a model's queue among the workers of a task queue."""
    return f"{task_queue}%{model}"


def queue_key(step: Step | Open, spec: Agent) -> str | None:
    """Return the key by which the queue of a step is known; None for the common queue."""
    if isinstance(step, Act | Delegate | Report | CloneRepository | Prepare | SetUp):
        return TOOLS
    return first_model(step, spec)


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
