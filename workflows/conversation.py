"""The workflow of one conversation: decide on steps, run them, fold their results."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError
from temporalio.workflow import ContinueAsNewVersioningBehavior

from perdure.agent.loop.attempt import AttemptSummary
from perdure.agent.loop.decide import MAX_RECORD_BYTES, decide, select_items
from perdure.agent.loop.evolve import fold
from perdure.agent.loop.inbox import InboxItem, UserMessage, json_size
from perdure.agent.loop.sample_steps import needed_allowance, next_sample_step
from perdure.agent.loop.start import ConversationStatus, Start
from perdure.agent.loop.state import (
    State,
    find_lost_call,
    is_recorded,
    note_lost_call,
    postpone_condensing,
    update_notes,
)
from perdure.agent.loop.steps import (
    Act,
    Close,
    Condense,
    Delegate,
    FinishAttempt,
    GenerateTitle,
    Open,
    Record,
    SaveState,
    Step,
)
from perdure.agent.spec import Agent
from perdure.temporal.search_attributes import search_attributes, status_markdown
from perdure.workflows.batch.budget_requests import await_allowance
from perdure.workflows.messages import parse_start
from perdure.workflows.model_queues import KnownModelQueues
from perdure.workflows.step_failures import (
    StepError,
    describe_lost_call,
    failure_item,
    is_unprovoked,
)
from perdure.workflows.step_runner import StepRunner

MAX_HANDOVER_BYTES = 120 * 1024
"""Size limit of the next run's input; a larger inbox is recorded first."""

MAX_RUN_EVENTS = 1500
"""History events after which a run continues as new."""


# Invalid input, as somebody may type it, fails the workflow with a sentence, and the next message
# opens the conversation again. A bug only fails the workflow task, and waits for the next version.
@workflow.defn(name="Conversation", failure_exception_types=[ValueError])
class Conversation(StepRunner):
    """The workflow of one conversation, whose log (not its history) must never be lost."""

    @workflow.init
    def __init__(self, *sent: Any) -> None:
        start = self.start = parse_start(sent)
        self.conversation_id = start.conversation_id
        self.user_id = start.user_id
        self.is_opened = start.state is not None
        self.state = start.state or State()
        self.notes = start.notes
        self.inbox: list[InboxItem] = list(start.inbox)
        self.saved_seq = self.state.next_seq
        self.model_queues = KnownModelQueues(start.model_queues)
        self.result: AttemptSummary | None = None
        self.published = (self.state.status, self.state.spec_seq)
        self.step_tasks: list[asyncio.Task[None]] = []
        self.interruptible: list[asyncio.Task[Any]] = []
        self.is_stopping = False

    @workflow.run
    async def run(self, *sent: Any) -> ConversationStatus:  # noqa: ARG002 - `__init__` has it
        try:
            return await self.converse()
        except asyncio.CancelledError:  # stop the steps, and record what they did
            self.close()
            return await self.converse()

    async def converse(self) -> ConversationStatus:
        await self.run_steps(Open(spec=self.start.spec) if not self.is_opened else None)
        while True:
            while await self.await_work():
                if not await self.ensure_allowance():
                    continue
                await self.run_steps(*self.next_steps(self.seconds_left()))
                if self.should_continue_as_new():
                    workflow.continue_as_new(
                        self.continuation(),
                        initial_versioning_behavior=ContinueAsNewVersioningBehavior.AUTO_UPGRADE,
                    )
            await self.end()
            await workflow.wait_condition(lambda: bool(self.inbox) or self.handlers_finished())
            if not self.inbox:
                return self.status().model_copy(update={"scored": self.result})

    async def end(self) -> None:
        """Save the state of a conversation that ends, for now or for good; score an attempt."""
        trial = self.start.attempt
        if trial is not None:
            self.result = await self.execute(
                FinishAttempt(attempt=trial, state=self.state), AttemptSummary
            )
        elif self.saved_seq != self.state.next_seq:
            await self.run_steps(Close(state=self.state))
        self.saved_seq = self.state.next_seq

    def next_steps(self, seconds_left: float | None = None) -> Sequence[Step]:
        steps = decide(self.state, self.inbox, seconds_left, self.notes)
        if steps or self.start.attempt is None:
            return steps
        step = next_sample_step(self.start.attempt, self.state)
        return (step,) if step else ()

    async def ensure_allowance(self) -> bool:
        """Tell whether the allowance covers the next steps; if not, wait for a larger one."""
        trial = self.start.attempt
        if trial is None or self.inbox:
            return True
        missing = needed_allowance(trial, self.state, self.next_steps(self.seconds_left()))
        if missing is None:
            return True
        await await_allowance(self, missing, self.seconds_left())
        return False

    async def await_work(self) -> bool:
        """Wait until there is something to do; return False once there never will be."""
        if self.next_steps():
            return True
        if self.state.status == "closed" or self.is_done():
            return False
        if self.saved_seq != self.state.next_seq:
            self.saved_seq = self.state.next_seq
            await self.run_steps(SaveState(state=self.state))
        return await self.await_inbox()

    def is_done(self) -> bool:
        """Tell whether this delegated turn, or attempt at a sample, is over."""
        waits = ("running", "paused", "waiting_for_confirmation")
        has_begun = self.state.turn or (self.start.attempt and self.is_opened)
        is_child = self.start.parent or self.start.attempt
        return bool(is_child and has_begun) and self.state.status not in waits

    async def await_inbox(self) -> bool:
        if self.start.attempt is not None:  # its batch waits, however long the pause
            await workflow.wait_condition(lambda: bool(self.inbox))
            return True
        timeout = timedelta(seconds=self.spec.idle_timeout)
        try:
            await workflow.wait_condition(lambda: bool(self.inbox), timeout=timeout)
        except TimeoutError:
            return bool(self.inbox)
        return True

    async def run_steps(self, *steps: Step | Open | None) -> None:
        """Run the steps concurrently; a deadline that passes meanwhile stops them.

        After a cancellation this is called again, and first awaits the steps that still run.
        """
        if not self.step_tasks:
            self.is_stopping = False
            self.step_tasks = [
                asyncio.create_task(self.run_and_apply(step)) for step in steps if step
            ]
        left = self.seconds_left()
        if left is not None and left > 0:
            try:
                await workflow.wait_condition(self.is_idle, timeout=timedelta(seconds=left))
            except TimeoutError:
                self.stop()
        await workflow.wait_condition(self.is_idle)
        done, self.step_tasks = self.step_tasks, []
        for task in done:
            task.result()
        self.publish_status()

    def is_idle(self) -> bool:
        return all(task.done() for task in self.step_tasks)

    async def run_and_apply(self, step: Step | Open) -> None:
        """Run a step, and apply its events or its failure to the state."""
        if isinstance(step, Open):
            await self.open(step)
            return
        try:
            digests = await self.run_step(step)
        except (ActivityError, asyncio.CancelledError) as error:
            self.apply_failure(step, error)
            return
        self.state = fold(self.state, digests or [])
        self.notes = update_notes(self.notes, self.state, digests or [])
        if isinstance(step, Record):
            del self.inbox[: step.from_inbox]
        if isinstance(step, Condense) and not digests:
            self.notes = postpone_condensing(self.notes, self.state)

    def apply_failure(self, step: Step, error: StepError) -> None:
        """Apply the failure of a step; events that it still wrote are folded later."""
        if isinstance(step, Act | Delegate):
            self.notes = note_lost_call(self.notes, step.action_seq, describe_lost_call(error))
        elif isinstance(step, GenerateTitle):
            self.notes = self.notes.model_copy(update={"title_failed": True})
        elif isinstance(error, ActivityError) and is_unprovoked(error):
            self.inbox.append(failure_item(step, error))

    async def open(self, step: Open) -> None:
        step = step.model_copy(
            update={
                "items": self.opening_items(step.spec),
                "parent": self.start.parent,
                "attempt": self.start.attempt,
            }
        )
        self.state = await self.execute(step, State)
        left = self.inbox[len(step.items) :]
        self.inbox = [item for item in left if not is_recorded(self.state, item)]
        self.is_opened = True

    def opening_items(self, spec: Agent | None) -> tuple[InboxItem, ...]:
        """Return the items to record with the opening: none if a long prompt leaves no room."""
        items = select_items([item for item in self.inbox if isinstance(item, UserMessage)])
        if list(items) != self.inbox[: len(items)]:
            return ()
        size = sum(map(json_size, items)) + (len(spec.model_dump_json()) if spec else 0)
        return items if size < MAX_RECORD_BYTES else ()

    def seconds_left(self) -> float | None:
        deadline = self.spec.limits.deadline
        if deadline is None:
            return None
        return (datetime.fromisoformat(f"{deadline}+00:00") - workflow.now()).total_seconds()

    def should_continue_as_new(self) -> bool:
        """Tell whether to continue as new, which must not happen while an update is handled."""
        info = workflow.info()
        long = (
            info.get_current_history_length() > MAX_RUN_EVENTS
            or info.is_continue_as_new_suggested()
        )
        old = info.is_target_worker_deployment_version_changed()
        # The late result of a lost call must be resolved by the same run.
        resolved = find_lost_call(self.state, self.notes) is None
        due = (long or old) and resolved and self.handlers_finished()
        return due and json_size(self.continuation()) < MAX_HANDOVER_BYTES

    def handlers_finished(self) -> bool:
        return workflow.all_handlers_finished()

    def continuation(self) -> Start:
        changes = {
            "state": self.state,
            "notes": self.notes,
            "inbox": tuple(self.inbox),
            "model_queues": self.model_queues.as_input(),
        }
        return self.start.model_copy(update={"spec": None, **changes})

    def publish_status(self) -> None:
        """Update the details and search attributes that the Temporal UI shows."""
        workflow.set_current_details(
            status_markdown(self.conversation_id, self.user_id, self.state)
        )
        status = (self.state.status, self.state.spec_seq)
        if self.start.searchable and self.published != status:
            workflow.upsert_search_attributes(
                search_attributes(self.user_id, self.state, workflow.now().astimezone(UTC))
            )
        self.published = status
