"""Running the steps of a conversation as activities, and stopping them."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, FailureError
from temporalio.workflow import ActivityConfig

from perdure.agent.loop.start import Delegation, Start
from perdure.agent.loop.state import State
from perdure.agent.loop.steps import (
    Act,
    CloneRepository,
    Close,
    Condense,
    Delegate,
    FinishAttempt,
    GenerateTitle,
    Ingest,
    Open,
    Report,
    SaveState,
    Step,
    Task,
    Think,
)
from perdure.agent.spec import Agent, ModelSpec
from perdure.events.summary import EventSummary
from perdure.workflows.activity_options import activity_options, home_queue_options
from perdure.workflows.children import STOPPED_BEFORE_START, run_child
from perdure.workflows.ids import choose_task_ids
from perdure.workflows.local_steps import LocalSteps
from perdure.workflows.model_queues import Execute, KnownModelQueues
from perdure.workflows.step_failures import (
    is_graded,
    is_on_wrong_queue,
    was_never_started,
    workflow_failure,
)

INTERRUPTIBLE_STEPS = (Think, Condense, GenerateTitle, Act, Delegate, CloneRepository)
"""Steps that an interrupt stops."""

PLACEHOLDER_SPEC = Agent(model=ModelSpec(name="none"))
"""The spec whose timeouts count until the log has been opened."""


class StepRunner:
    """The steps of one conversation that run: each as the activity of its kind.

    `read_state` returns the state of this moment, which other steps may have changed meanwhile.
    """

    def __init__(self, start: Start, read_state: Callable[[], State]) -> None:
        self.start = start
        self.task_ids = choose_task_ids(start)
        self.read_state = read_state
        self.model_queues = KnownModelQueues(start.model_queues)
        self.local_steps = LocalSteps()
        self.interruptible: list[asyncio.Task[Any]] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.is_stopping = False

    async def run_all(
        self,
        steps: Sequence[Step | Open],
        run: Callable[[Step | Open], Coroutine[Any, Any, None]],
        seconds_left: float | None,
    ) -> None:
        """Run the steps concurrently, each by `run`; stop them after `seconds_left`.

        After a cancellation this is called again, and first awaits those that still run.
        """
        if not self.tasks:
            self.is_stopping = False
            self.local_steps.begin_round(steps, self.read_state())
            self.tasks = [asyncio.create_task(run(step)) for step in steps]
        if seconds_left is not None and seconds_left > 0:
            try:
                await workflow.wait_condition(self.is_idle, timeout=timedelta(seconds=seconds_left))
            except TimeoutError:
                self.stop()
        await workflow.wait_condition(self.is_idle)
        done, self.tasks = self.tasks, []
        for task in done:
            task.result()
        await self.local_steps.end_round()

    def is_idle(self) -> bool:
        return all(task.done() for task in self.tasks)

    async def run_step(self, step: Step) -> list[EventSummary]:
        """Run a step, and return the summaries of its events. Raises what `execute` raises."""
        match step:
            case Delegate():
                return await self.delegate(step)
            case SaveState() | Close() | Ingest():
                await self.execute(step, type(None))
                return []
            case _:
                summaries: list[EventSummary] = await self.execute(step, list[EventSummary])
                return summaries

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
            files_seq=self.read_state().files_seq,
            failure=failure,
        )
        summaries: list[EventSummary] = await self.execute(report, list[EventSummary])
        return summaries

    async def execute(self, step: Step | Open, result_type: Any) -> Any:
        """Run the activity of the step's kind; its events begin at the next slot of the log.

        Raises ActivityError, or ApplicationError if this run must end.
        """
        state = self.read_state()
        if isinstance(step, Think) and self.local_steps.is_blind:
            seen = workflow.info().get_current_history_length()
            step = step.model_copy(update={"seen_events": seen})
        task = Task[Any](**self.task_ids, base=state.next_seq, step=step)
        spec, is_sample = state.spec or PLACEHOLDER_SPEC, self.start.attempt is not None
        options = activity_options(step, state, spec, is_sample)
        if self.local_steps.round and not self.is_stopping:
            try:
                return await self.local_steps.run(step, task, result_type, options["summary"])
            except FailureError:  # in a replay, that of the marker alone: see `give_up`
                options["activity_id"] = self.local_steps.give_up(step, state, task.base)
        run = partial(self.run_activity, step, task, result_type)
        while True:
            try:
                return await self.run_on_queues(step, state, options, run)
            except ActivityError as error:
                if is_graded(error):  # what is left needs the workspace
                    continue
                if (fatal := workflow_failure(step, error)) is not None:
                    raise fatal from error
                raise

    async def run_on_queues(
        self, step: Step | Open, state: State, options: ActivityConfig, run: Execute
    ) -> Any:
        """Run a step where its files are, or on the queue of its model. Raises ActivityError."""
        spec = state.spec or PLACEHOLDER_SPEC
        if (queue := self.home_queue_of(step, state)) is not None:
            try:
                return await run({**options, **home_queue_options(queue, spec)})
            except ActivityError as error:
                if not (was_never_started(error) or is_on_wrong_queue(error)):
                    raise
        return await self.model_queues.route(step, spec, options, run)

    def home_queue_of(self, step: Step | Open, state: State) -> str | None:
        """Return the queue of the workers that have the files which the step needs."""
        match step:
            case FinishAttempt() if step.attempt.scores_workspace:
                return state.home
            case Act() | Delegate() | Report() | CloneRepository():
                return state.home or (self.start.parent.home if self.start.parent else None)
            case _:
                return None

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
