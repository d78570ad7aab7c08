"""Routing of steps to the queues of rate-limited models, and of workers of one kind."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any

from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.workflow import ActivityConfig

from perdure.agent.loop.model_queues import REROUTED_SUFFIX, TOOLS, WRONG_QUEUE, queue_key
from perdure.agent.loop.steps import Open, Step
from perdure.agent.spec import Agent
from perdure.workflows.activity_options import MODEL_OUTAGE_TIMEOUT, home_queue_options
from perdure.workflows.step_failures import was_never_started

WAIT_FACTOR = 4
"""Factor by which a step waits longer in a queue that turned out to be slow."""

MAX_QUEUE_WAIT = timedelta(days=1)

Execute = Callable[[ActivityConfig], Awaitable[Any]]


class KnownModelQueues:
    """The queues of steps, by the model's name or the key of tools, as far as a conversation knows.

    A queue without workers looks like a queue that is far behind. So a step that has waited long
    goes to the common queue, where a worker runs it or sends it back to wait longer.
    """

    def __init__(self, queues: Mapping[str, str] | None) -> None:
        self.queues = dict(queues or {})
        self.waits: Counter[str] = Counter()

    def as_input(self) -> dict[str, str] | None:
        """Return the queues as the input of another conversation or of the next run."""
        return dict(self.queues) or None

    async def route(
        self, step: Step | Open, spec: Agent, options: ActivityConfig, execute: Execute
    ) -> Any:
        """Run a step on one queue after another until a worker takes it.

        Raises ActivityError.
        """
        return await self.route_key(queue_key(step, spec), spec, options, execute)

    async def route_key(
        self, key: str | None, spec: Agent, options: ActivityConfig, execute: Execute
    ) -> Any:
        """Run an activity on the queue of a key, or on the one that a worker names."""
        while True:
            try:
                return await execute({**options, **self.queue_options(key, spec)})
            except ActivityError as error:
                if (key := self.reroute(key, error)) is None:
                    raise
                options = {
                    **options,
                    "activity_id": f"{error.activity_id.rstrip(REROUTED_SUFFIX)}{REROUTED_SUFFIX}",
                }

    def queue_options(self, key: str | None, spec: Agent) -> ActivityConfig:
        """Return the queue of a key and its timeouts; empty for the common queue."""
        if key is None or (queue := self.queues.get(key)) is None:
            return ActivityConfig()
        home_options = home_queue_options(queue, spec)
        wait = home_options["schedule_to_start_timeout"] or MAX_QUEUE_WAIT
        timeout = min(wait * WAIT_FACTOR ** min(self.waits[key], 10), MAX_QUEUE_WAIT)
        config = ActivityConfig(task_queue=queue, schedule_to_start_timeout=timeout)
        if key != TOOLS:  # a tool may take as long as its own timeout says
            config["schedule_to_close_timeout"] = MODEL_OUTAGE_TIMEOUT + timeout
        return config

    def reroute(self, key: str | None, error: ActivityError) -> str | None:
        """Learn from an error; return the key to route by, or None if the step failed."""
        cause = error.cause
        if isinstance(cause, ApplicationError) and cause.type == WRONG_QUEUE:
            rerouted, queue = map(str, cause.details)
            self.queues[rerouted] = queue
            return rerouted
        if key in self.queues and was_never_started(error):
            del self.queues[key]
            self.waits[key] += 1
            return key
        return None
