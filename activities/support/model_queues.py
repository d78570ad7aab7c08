"""Limiting the rate at which all workers together call a model."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from perdure.agent.loop.model_queues import WRONG_QUEUE, first_model, model_queue_name
from perdure.agent.loop.steps import Step
from perdure.agent.spec import Agent


@dataclass(frozen=True)
class RateLimitedQueues:
    """The queues of rate-limited models.

    `rates` limits the calls per minute of a model by its name; other models have no limit. Temporal
    enforces a rate by dispatching no more steps from the model's queue.
    """

    task_queue: str = ""
    rates: Mapping[str, float] = field(default_factory=dict)

    @property
    def queues(self) -> dict[str, str]:
        """The queue of each limited model."""
        return {model: model_queue_name(self.task_queue, model) for model in self.rates}

    def admit(self, step: Step, spec: Agent) -> None:
        """Raise ApplicationError if the step runs on another queue than that of its model.

        Call it before the model is called.
        """
        model = first_model(step, spec)
        if model is not None:
            self.admit_model(model)

    def admit_model(self, model: str) -> None:
        """Raise ApplicationError if this activity runs on another queue than that of the model."""
        if model not in self.rates:
            return
        queue = model_queue_name(self.task_queue, model)
        if activity.info().task_queue != queue:
            raise ApplicationError(
                f"{model} is asked from the queue {queue!r}.",
                model,
                queue,
                type=WRONG_QUEUE,
                non_retryable=True,
                category=ApplicationErrorCategory.BENIGN,
            )

    def is_model_queue(self) -> bool:
        """Tell whether this activity runs on the queue of a model."""
        return bool(self.rates) and activity.info().task_queue in self.queues.values()
