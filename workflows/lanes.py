"""Which queue a step goes to that asks a model, as the workers tell it."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any

from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.workflow import ActivityConfig

from agent.lanes import AGAIN, ELSEWHERE, model_of
from agent.spec import Spec
from agent.steps import Open, Step
from workflows.failures import nobody_there
from workflows.options import GIVING_UP, at_home

LONGER = 4
"""How many times as long is waited, after a queue turned out to be slow and not deserted."""

LONGEST = timedelta(days=1)

Ask = Callable[[ActivityConfig], Awaitable[Any]]


class Lanes:
    """The queues of limited models that a conversation knows of, by the model's name.

    A queue that nobody takes steps from looks like one that is far behind. So a step that has
    waited long goes to the common queue, where a worker does it or sends it back, to wait longer.
    """

    def __init__(self, known: Mapping[str, str] | None) -> None:
        self.queues = dict(known or {})
        self.waits: Counter[str] = Counter()

    def known(self) -> dict[str, str] | None:
        """What to tell another conversation, or the next run of this one."""
        return dict(self.queues) or None

    async def routed(self, step: Step | Open, spec: Spec, chosen: ActivityConfig, ask: Ask) -> Any:
        """What comes of a step, asked for on one queue after another until it is taken.

        Raises ActivityError.
        """
        model = model_of(step, spec)
        while True:
            try:
                return await ask({**chosen, **self.way(model, spec)})
            except ActivityError as error:
                if (model := self.learned(model, error)) is None:
                    raise
                chosen = {**chosen, "activity_id": f"{error.activity_id.rstrip(AGAIN)}{AGAIN}"}

    def way(self, model: str | None, spec: Spec) -> ActivityConfig:
        """The queue of a model, and how long to wait there; nothing: the common one."""
        if model is None or (queue := self.queues.get(model)) is None:
            return ActivityConfig()
        brief = at_home(queue, spec)
        waited = brief["schedule_to_start_timeout"] or LONGEST
        patience = min(waited * LONGER ** min(self.waits[model], 10), LONGEST)
        return ActivityConfig(
            task_queue=queue,
            schedule_to_start_timeout=patience,
            schedule_to_close_timeout=GIVING_UP + patience,
        )

    def learned(self, model: str | None, error: ActivityError) -> str | None:
        """The model by which the step is to be sent again; none where it failed."""
        cause = error.cause
        if isinstance(cause, ApplicationError) and cause.type == ELSEWHERE:
            told, queue = map(str, cause.details)
            self.queues[told] = queue
            return told
        if model in self.queues and nobody_there(error):
            del self.queues[model]
            self.waits[model] += 1
            return model
        return None
