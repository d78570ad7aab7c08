"""Running brief steps as local activities, which save a round trip to Temporal.

A local activity runs inside the workflow task, which sees no signal until it has ended. So a task
has one round of local calls at most, and ends behind one that was not as brief as it claimed:
nothing begins long after a signal was accepted.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy

from perdure.agent.loop.local_steps import find_brief_name, local_activity_id
from perdure.agent.loop.model_queues import REROUTED_SUFFIX
from perdure.agent.loop.state import State
from perdure.agent.loop.steps import Act, Open, SaveState, Step, Task
from perdure.workflows.versions import saves_locally

LOCAL_TIMEOUT = timedelta(seconds=1)
"""Time after which a local step is begun again as an ordinary activity."""

MAX_BLIND_TIME = timedelta(milliseconds=100)
"""Time in a local step after which the task ends, so that waiting signals are seen."""

SHORTEST_TIMER = timedelta(milliseconds=1)

NO_RETRY = RetryPolicy(maximum_attempts=1)


class LocalSteps:
    """The local steps of one run, and the names of those that turned out not to be brief."""

    def __init__(self) -> None:
        self.slow_names: set[str] = set()
        self.round: frozenset[str] = frozenset()
        """The names of the steps side by side that run locally now; empty for ordinary ones."""
        self.has_called = False
        """Whether this task has had its local calls."""
        self.is_blind = False
        """Whether the ordinary steps that run now were decided on behind local calls."""
        self.began = datetime.min.replace(tzinfo=UTC)

    def begin_round(self, steps: Sequence[Step | Open], state: State) -> None:
        """Choose whether the steps of a round run locally: all of them or none.

        An ordinary step beside them would only begin once the task ends.
        """
        self.round, self.is_blind = frozenset(), False
        if not self.may_run_locally(steps, state):
            return
        names = {find_brief_name(step, state) for step in steps}
        calls = any(isinstance(step, Act) for step in steps)
        if not names.isdisjoint({None, *self.slow_names}) or (calls and self.has_called):
            # An ordinary activity ends the task.
            self.is_blind, self.has_called = self.has_called, False
            return
        self.round = frozenset(filter(None, names))
        self.has_called, self.began = calls, workflow.now()

    def may_run_locally(self, steps: Sequence[Step | Open], state: State) -> bool:
        """Tell whether brief steps of a round run locally.

        Those of an agent that asks for it do, and the saving of any conversation.
        """
        if state.spec is None:
            return False
        if state.spec.local_activities:
            return True
        is_saving = bool(steps) and all(isinstance(step, SaveState) for step in steps)
        return is_saving and state.spec.repository is None and saves_locally()

    async def end_round(self) -> None:
        """End the task behind steps that were not brief, and run them as ordinary ones from now on.

        Raises CancelledError.
        """
        if not self.round or workflow.now() - self.began <= MAX_BLIND_TIME:
            return
        self.slow_names |= self.round
        if self.has_called:
            self.has_called = False
            await workflow.sleep(SHORTEST_TIMER)

    async def run(
        self, step: Step | Open, task: Task[Any], result_type: Any, summary: str | None
    ) -> Any:
        """Run a step locally, once. Raises FailureError if it must run as an ordinary activity."""
        return await workflow.start_local_activity(
            step.kind,
            task,
            result_type=result_type,
            schedule_to_close_timeout=LOCAL_TIMEOUT,
            retry_policy=NO_RETRY,
            activity_id=local_activity_id(step, task.base),
            summary=summary,
        )

    def give_up(self, step: Step | Open, state: State, base: int) -> str:
        """Note that a step failed locally, for any reason; return its id as an ordinary activity.

        The reason must not matter: a replay raises it bare, not as the cause of an ActivityError.
        """
        self.slow_names.add(find_brief_name(step, state) or step.kind)
        self.has_called = False
        return f"{local_activity_id(step, base)}{REROUTED_SUFFIX}"
