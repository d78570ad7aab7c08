"""Running the steps of a conversation as activities, and stopping them."""

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError
from temporalio.workflow import ActivityConfig

from perdure.agent.loop.start import Delegation
from perdure.agent.loop.steps import (
    Act,
    Close,
    Condense,
    Delegate,
    FinishAttempt,
    GenerateTitle,
    Open,
    Report,
    SaveState,
    Step,
    Task,
    Think,
)
from perdure.events.summary import EventSummary
from perdure.workflows.activity_options import activity_options, home_queue_options
from perdure.workflows.children import STOPPED_BEFORE_START, run_child
from perdure.workflows.handlers import Handlers
from perdure.workflows.model_queues import KnownModelQueues
from perdure.workflows.step_failures import was_never_started, workflow_failure

INTERRUPTIBLE_STEPS = (Think, Condense, GenerateTitle, Act, Delegate)
"""Steps that an interrupt stops."""


class StepRunner(Handlers):
    """Runs each step by the activity of its kind, and can stop the steps that run."""

    user_id: str
    model_queues: KnownModelQueues
    interruptible: list[asyncio.Task[Any]]
    is_stopping: bool

    async def run_step(self, step: Step) -> list[EventSummary] | None:
        match step:
            case Delegate():
                return await self.delegate(step)
            case SaveState() | Close():
                await self.execute(step, type(None))
                return None
            case _:
                digests: list[EventSummary] = await self.execute(step, list[EventSummary])
                return digests

    async def delegate(self, step: Delegate) -> list[EventSummary]:
        """Run the step in a child conversation, and record its report."""
        errand: Delegation = await self.execute(step, Delegation)
        if errand.start is None:
            return list(errand.results)
        inherited = {
            "searchable": self.start.searchable,
            "model_queues": self.model_queues.as_input(),
        }
        start = errand.start.model_copy(update=inherited)
        failure: str | None = STOPPED_BEFORE_START
        if not self.is_stopping:
            failure = await run_child(start, self.await_interruptible)
        report = Report(
            action_seq=step.action_seq,
            child=errand.start.conversation_id,
            spec_seq=step.spec_seq,
            files_seq=self.state.files_seq,
            failure=failure,
        )
        digests: list[EventSummary] = await self.execute(report, list[EventSummary])
        return digests

    async def execute(self, step: Step | Open, result_type: Any) -> Any:
        """Run the activity of the step's kind; its events begin at the next slot of the log.

        Raises ActivityError, or ApplicationError if this run must end.
        """
        task = Task[Any](
            conversation_id=self.conversation_id,
            user_id=self.user_id,
            base=self.state.next_seq,
            step=step,
        )
        options = activity_options(step, self.state, self.spec)
        try:
            if (queue := self.home_queue_of(step)) is not None:
                try:
                    return await self.run_activity(
                        step, task, result_type, {**options, **home_queue_options(queue, self.spec)}
                    )
                except ActivityError as error:
                    if not was_never_started(error):
                        raise
            return await self.model_queues.route(
                step,
                self.spec,
                options,
                lambda queued: self.run_activity(step, task, result_type, queued),
            )
        except ActivityError as error:
            if (fatal := workflow_failure(step, error)) is not None:
                raise fatal from error
            raise

    def home_queue_of(self, step: Step | Open) -> str | None:
        """Return the queue of the workers that have the files which the step needs."""
        if isinstance(step, FinishAttempt) and step.attempt.scores_workspace:
            return self.state.home
        if not isinstance(step, Act | Delegate | Report):
            return None
        return self.state.home or (self.start.parent.home if self.start.parent else None)

    async def run_activity(
        self, step: Step | Open, task: Task[Any], result_type: Any, options: ActivityConfig
    ) -> Any:
        activity = workflow.start_activity(step.kind, task, result_type=result_type, **options)
        # A step that writes to the log must not be stopped half-way: a repeat would write it twice.
        if isinstance(step, INTERRUPTIBLE_STEPS):
            return await self.await_interruptible(activity)
        return await activity

    async def await_interruptible(self, work: Any) -> Any:
        """Await work that an interrupt may cancel; its partial result still counts."""
        task = asyncio.ensure_future(work)
        self.interruptible.append(task)
        if self.is_stopping:
            task.cancel()
        try:
            return await task
        finally:
            self.interruptible.remove(task)

    def stop(self) -> None:
        """Cancel the interruptible steps, those that are about to start included."""
        self.is_stopping = True
        for task in self.interruptible:
            task.cancel()
