"""Keeping the steps that ask a model to the rate that all workers together may ask it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from agent.lanes import ELSEWHERE, lane_of, model_of
from agent.spec import Spec
from agent.steps import Step


@dataclass(frozen=True)
class Lanes:
    """`rates` is how many calls a minute a model may get, by its name; any number of the others.

    Temporal keeps a rate: it hands out no more steps from the queue of the model.
    """

    task_queue: str = ""
    rates: Mapping[str, float] = field(default_factory=dict)

    @property
    def queues(self) -> dict[str, str]:
        """The queue of each limited model."""
        return {model: lane_of(self.task_queue, model) for model in self.rates}

    def admit(self, step: Step, spec: Spec) -> None:
        """Raises ApplicationError where the step's model is asked from another queue than its own.

        To be called before anything is asked.
        """
        model = model_of(step, spec)
        if model is None or model not in self.rates:
            return
        queue = lane_of(self.task_queue, model)
        if activity.info().task_queue != queue:
            raise ApplicationError(
                f"{model} is asked from the queue {queue!r}.",
                model,
                queue,
                type=ELSEWHERE,
                non_retryable=True,
                category=ApplicationErrorCategory.BENIGN,
            )
