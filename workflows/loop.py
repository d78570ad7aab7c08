"""The loop of one conversation: decide on steps, run them, fold their results."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, FailureError
from temporalio.workflow import ContinueAsNewVersioningBehavior

from perdure.agent.loop.admission import until_suspended
from perdure.agent.loop.attempt import Allowance, AttemptSummary
from perdure.agent.loop.decide import decide, select_opening_items
from perdure.agent.loop.evolve import fold
from perdure.agent.loop.inbox import (
    CloseRequest,
    InboxItem,
    InterruptRequest,
    UserMessage,
    json_size,
)
from perdure.agent.loop.sample_steps import needed_allowance, next_sample_step
from perdure.agent.loop.start import MAX_RUN_EVENTS, ConversationStatus, Start, build_status
from perdure.agent.loop.state import (
    State,
    find_lost_call,
    has_unsaved_messages,
    is_recorded,
    note_lost_call,
    postpone_condensing,
    seconds_until_end,
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
from perdure.workflows.admission import ConversationAdmission
from perdure.workflows.batch.budget_requests import await_allowance
from perdure.workflows.step_failures import (
    StepError,
    describe_lost_call,
    failure_item,
    is_unprovoked,
)
from perdure.workflows.step_runner import PLACEHOLDER_SPEC, StepRunner

MESSAGES_PATCH = "llm_messages.json of a conversation that ends idle"

MAX_HANDOVER_BYTES = 120 * 1024
"""Size limit of the next run's input; a larger inbox is recorded first."""


class ConversationLoop:
    """A run of a conversation: its state, its inbox, and the loop over both."""

    def __init__(self, start: Start) -> None:
        self.start = start
        self.conversation_id = start.conversation_id
        self.is_opened = start.state is not None
        self.state = start.state or State()
        self.notes = start.notes
        self.inbox: list[InboxItem] = list(start.inbox)
        self.runner = StepRunner(start, lambda: self.state)
        self.admission = ConversationAdmission(self)
        self.saved_seq = self.state.next_seq
        self.result: AttemptSummary | None = None
        self.published = (self.state.status, self.state.spec_seq)
        self.failure: Exception | None = None

    @property
    def spec(self) -> Agent:
        return self.state.spec or PLACEHOLDER_SPEC

    def status(self) -> ConversationStatus:
        return build_status(self.conversation_id, self.state, len(self.inbox))

    async def run(self) -> ConversationStatus:
        """Run until the conversation ends, for now or for good.

        Raises ApplicationError if its log cannot be written or read; requests that wait fail first.
        """
        try:
            try:
                return await self.converse()
            except asyncio.CancelledError:  # stop the steps, and record what they did
                self.close()
                return await self.converse()
        except (FailureError, ValueError) as error:
            self.failure = error
            await workflow.wait_condition(workflow.all_handlers_finished)
            raise

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Let a request wait for a condition. Raises ApplicationError if the run fails first."""
        await workflow.wait_condition(lambda: self.failure is not None or condition())
        if self.failure is not None and not condition():
            raise ApplicationError(str(self.failure), type="RunFailed", non_retryable=True)

    def add(self, item: InboxItem) -> None:
        """Put an item into the inbox, unless it is a message that came before."""
        if not self.is_duplicate(item):
            self.admission.note_activity()
            self.inbox.append(item)

    async def record(self, item: InboxItem) -> None:
        """Put an item into the inbox, and wait until it is in the log."""
        self.inbox.append(item)
        await self.wait_until(lambda: all(waiting is not item for waiting in self.inbox))

    def is_duplicate(self, item: InboxItem) -> bool:
        """Tell whether a message with the same `message_id` came before."""
        if not isinstance(item, UserMessage) or item.message_id is None:
            return False
        waiting_ids = (
            waiting.message_id for waiting in self.inbox if isinstance(waiting, UserMessage)
        )
        return is_recorded(self.state, item) or item.message_id in waiting_ids

    def grant(self, allowance: Allowance) -> None:
        """Let an attempt at a sample spend more; any other conversation has no allowance."""
        if self.start.attempt is not None:
            attempt = self.start.attempt.model_copy(update={"allowance": allowance})
            self.start = self.start.model_copy(update={"attempt": attempt})

    def interrupt(self) -> None:
        self.inbox.append(InterruptRequest())
        self.runner.stop()

    def close(self) -> None:
        self.inbox.append(CloseRequest())
        self.runner.stop()

    async def converse(self) -> ConversationStatus:
        await self.run_steps(Open(spec=self.start.spec) if not self.is_opened else None)
        while True:
            while await self.await_work():
                if not await self.ensure_allowance():
                    continue
                await self.admission.ensure()
                await self.run_steps(*self.next_steps(self.seconds_left()))
                if self.should_continue_as_new():
                    workflow.continue_as_new(
                        self.continuation(),
                        initial_versioning_behavior=ContinueAsNewVersioningBehavior.AUTO_UPGRADE,
                    )
            await self.end()
            await workflow.wait_condition(
                lambda: bool(self.inbox) or workflow.all_handlers_finished()
            )
            if not self.inbox:
                return self.status().model_copy(update={"scored": self.result})

    async def end(self) -> None:
        """Save the state of a conversation that ends, for now or for good; score an attempt."""
        attempt = self.start.attempt
        if attempt is not None:
            self.result = await self.runner.execute(
                FinishAttempt(attempt=attempt, state=self.state), AttemptSummary
            )
        elif self.saved_seq != self.state.next_seq:
            await self.run_steps(Close(state=self.state))
        elif has_unsaved_messages(self.state) and workflow.patched(MESSAGES_PATCH):
            await self.run_steps(SaveState(state=self.state, ending=True))
        self.saved_seq = self.state.next_seq

    def next_steps(self, seconds_left: float | None = None) -> Sequence[Step]:
        inbox = until_suspended(self.inbox)
        steps = decide(self.state, inbox, seconds_left, self.notes)
        if steps or self.start.attempt is None:
            return steps
        step = next_sample_step(self.start.attempt, self.state)
        return (step,) if step else ()

    async def ensure_allowance(self) -> bool:
        """Tell whether the allowance covers the next steps; if not, wait for a larger one."""
        attempt = self.start.attempt
        if attempt is None or self.inbox:
            return True
        missing = needed_allowance(attempt, self.state, self.next_steps(self.seconds_left()))
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
        """Tell whether this turn, delegated or of a discussion, or attempt at a sample is over."""
        waits = ("running", "paused", "waiting_for_confirmation")
        has_begun = self.state.turn or (self.start.attempt and self.is_opened)
        is_child = self.start.parent or self.start.attempt or self.start.discussion
        return bool(is_child and has_begun) and self.state.status not in waits

    async def await_inbox(self) -> bool:
        if self.start.attempt is not None:  # its batch waits, however long the pause
            await workflow.wait_condition(lambda: bool(self.inbox))
            return True
        timeout = seconds_until_end(self.spec, self.state)
        try:
            await workflow.wait_condition(
                lambda: bool(self.inbox),
                timeout=timedelta(seconds=timeout),
                timeout_summary="the workflow ends unless a message comes",
            )
        except TimeoutError:
            return bool(self.inbox)
        return True

    async def run_steps(self, *steps: Step | Open | None) -> None:
        """Run the steps concurrently; a deadline that passes meanwhile stops them."""
        present = [step for step in steps if step]
        await self.runner.run_all(present, self.run_and_apply, self.seconds_left())
        if self.state.at_rest:
            self.admission.end()
        self.publish_status()

    async def run_and_apply(self, step: Step | Open) -> None:
        """Run a step, and apply its events or its failure to the state."""
        if isinstance(step, Open):
            await self.open(step)
            return
        try:
            summaries = await self.runner.run_step(step)
        except (ActivityError, asyncio.CancelledError) as error:
            self.apply_failure(step, error)
            return
        self.state = fold(self.state, summaries)
        self.notes = update_notes(self.notes, self.state, summaries)
        if isinstance(step, Record):
            del self.inbox[: step.from_inbox]
        if isinstance(step, Condense) and not summaries:
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
        counts = self.start.session_limit is not None  # it runs no sooner than it is admitted
        items = () if counts else select_opening_items(self.inbox, step.spec)
        step = step.model_copy(
            update={
                "items": items,
                "parent": self.start.parent,
                "attempt": self.start.attempt,
            }
        )
        self.state = await self.runner.execute(step, State)
        if self.start.starts_running:
            self.published = ("running", self.state.spec_seq)
        left = self.inbox[len(items) :]
        self.inbox = [item for item in left if not is_recorded(self.state, item)]
        self.is_opened = True

    def seconds_left(self) -> float | None:
        deadline = self.spec.limits.deadline
        if deadline is None:
            return None
        return (datetime.fromisoformat(f"{deadline}+00:00") - workflow.now()).total_seconds()

    def should_continue_as_new(self) -> bool:
        """Tell whether to continue as new, which must not happen while an update is handled."""
        info = workflow.info()
        long = (
            info.get_current_history_length() > self.start.max_run_events
            or info.is_continue_as_new_suggested()
        )
        old = info.is_target_worker_deployment_version_changed()
        # The late result of a lost call must be resolved by the same run.
        resolved = find_lost_call(self.state, self.notes) is None
        due = (long or old) and resolved and workflow.all_handlers_finished()
        return due and json_size(self.continuation()) < MAX_HANDOVER_BYTES

    def continuation(self) -> Start:
        changes = {
            "state": self.state,
            "notes": self.notes,
            "inbox": tuple(self.inbox),
            "model_queues": self.runner.model_queues.as_input(),
            "max_run_events": MAX_RUN_EVENTS,
            "admission_id": self.admission.id,
            "active_at": self.admission.active_at,
        }
        return self.start.model_copy(update={"spec": None, **changes})

    def publish_status(self) -> None:
        """Update the details and search attributes that the Temporal UI shows."""
        workflow.set_current_details(
            status_markdown(self.conversation_id, self.start.user_id, self.state)
        )
        status = (self.state.status, self.state.spec_seq)
        if self.start.searchable and self.published != status:
            workflow.upsert_search_attributes(
                search_attributes(self.start.user_id, self.state, workflow.now().astimezone(UTC))
            )
        self.published = status
