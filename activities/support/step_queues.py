"""The task queues of steps: of a model with a rate limit, and of workers of one kind."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from perdure.agent.loop.model_queues import (
    TOOLS,
    WRONG_QUEUE,
    first_model,
    llm_queue_name,
    model_queue_name,
    tools_queue_name,
)
from perdure.agent.loop.steps import Step
from perdure.agent.spec import Agent


@dataclass(frozen=True)
class StepQueues:
    """The steps that a worker takes from the common queue, and the queues of the rest.

    `rates` limits the calls per minute of a model by its name; other models have no limit. Temporal
    enforces a rate by dispatching no more steps from the model's queue. A worker that does not ask
    models, or runs no tools, sends such steps to the queue of those that do.
    """

    task_queue: str = ""
    rates: Mapping[str, float] = field(default_factory=dict)
    asks_models: bool = True
    runs_tools: bool = True

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
            self.admit_question(model)
            return
        queue = model_queue_name(self.task_queue, model)
        if activity.info().task_queue != queue:
            raise _wrong_queue(model, queue)

    def admit_question(self, model: str) -> None:
        """Raise ApplicationError if this worker asks no model; a rate is not looked at."""
        if not self.asks_models:
            raise _wrong_queue(model, llm_queue_name(self.task_queue))

    def admit_tool(self) -> None:
        """Raise ApplicationError if this worker runs no tools.

        Call it before anything is done in a workspace.
        """
        if not self.runs_tools:
            raise _wrong_queue(TOOLS, tools_queue_name(self.task_queue))

    def is_model_queue(self) -> bool:
        """Tell whether this activity runs on a queue of models."""
        queue = activity.info().task_queue
        return queue == llm_queue_name(self.task_queue) or queue in self.queues.values()


def _wrong_queue(key: str, queue: str) -> ApplicationError:
    """Build the failure by which a workflow learns the queue of a model, or of tools."""
    return ApplicationError(
        f"{key} is asked from the queue {queue!r}.",
        key,
        queue,
        type=WRONG_QUEUE,
        non_retryable=True,
        category=ApplicationErrorCategory.BENIGN,
    )
