"""Queues of their own for the models that may be asked only so often."""

from agent.spec import PipelineCondenser, Spec, SummaryCondenser
from agent.steps import Condense, Entitle, Open, Step, Think

ELSEWHERE = "Elsewhere"
"""The failure of a step that was taken from another queue than its model's: nothing was done.

Its details are the name of the model, and that queue.
"""

AGAIN = "+"
"""Ends the id of a step that went to another queue: the one before may have had it done already."""


def lane_of(task_queue: str, model: str) -> str:
    """The queue for a model among the workers of a task queue."""
    return f"{task_queue}%{model}"


def model_of(step: Step | Open, spec: Spec) -> str | None:
    """The name of the model that a step asks first; none where it asks none."""
    match step:
        case Think():
            return spec.model.name
        case Entitle():
            return spec.title_model.name if spec.title_model else None
        case Condense():
            return _summarising(spec)
        case _:
            return None


def _summarising(spec: Spec) -> str | None:
    one = spec.condenser
    condensers = one.condensers if isinstance(one, PipelineCondenser) else (one,)
    for condenser in condensers:
        if isinstance(condenser, SummaryCondenser):
            return (condenser.model or spec.model).name
    return None
