"""The loop of one conversation: decide on steps, run them, fold their results."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, FailureError

from perdure.agent.loop.admission import until_suspended
from perdure.agent.loop.attempt import Allowance, AttemptSummary
from perdure.agent.loop.decide import decide, select_opening_items
from perdure.agent.loop.evolve import fold
from perdure.agent.loop.inbox import CloseRequest, InboxItem, InterruptRequest, UserMessage
from perdure.agent.loop.sample_steps import needed_allowance, next_sample_step
from perdure.agent.loop.start import ConversationStatus, Start, build_status
from perdure.agent.loop.state import (
    UNFINISHED_STATUSES,
    State,
    has_unsaved_messages,
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
    Ingest,
    Open,
    Record,
    SaveState,
    Step,
)
from perdure.agent.spec import Agent
from perdure.temporal.search_attributes import changed_attributes, status_markdown
from perdure.workflows.admission import ConversationAdmission
from perdure.workflows.batch.budget_requests import await_allowance
from perdure.workflows.continuation import continue_if_due
from perdure.workflows.step_failures import (
    StepError,
    describe_lost_call,
    failure_item,
    is_unprovoked,
)
from perdure.workflows.step_runner import PLACEHOLDER_SPEC, StepRunner
from perdure.workflows.waits import await_inbox, timestamp_now

MESSAGES_PATCH = "llm_messages.json of a conversation that ends idle"


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
        self.saved_seq = self.state.next_seq if start.saved_seq is None else start.saved_seq
        self.refusals: dict[str, Any] = {}
        """What was refused of notes, by the note's id, until its handler has told the sender."""
        self.ingested_seq = -1
        self.is_cancelled = False
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
                self.is_cancelled = True
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

    def interrupt(self, actor: str | None = None) -> None:
        self.inbox.append(InterruptRequest(actor=actor))
        self.runner.stop()

    def close(self, actor: str | None = None) -> None:
        self.inbox.append(CloseRequest(actor=actor))
        self.runner.stop()

    async def converse(self) -> ConversationStatus:
        await self.run_steps(Open(spec=self.start.spec) if not self.is_opened else None)
        while True:
            while await self.await_work():
                if not await self.ensure_allowance():
                    continue
                await self.admission.ensure()
                await self.run_steps(*self.next_steps(self.seconds_left()))
                continue_if_due(self)
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
        # Needs no patch: the agents of workers that knew no memories have none to ingest. Of a
        # conversation that `perdure rm` cancels, nothing is to stay.
        is_own = attempt is None and self.start.parent is None and not self.is_cancelled
        if is_own and self.spec.memory.ingest and self.ingested_seq != self.saved_seq:
            self.ingested_seq = self.saved_seq
            await self.run_steps(Ingest(spec_seq=self.state.spec_seq))

    def next_steps(self, seconds_left: float | None = None) -> Sequence[Step]:
        inbox = until_suspended(self.inbox)
        steps = decide(self.state, inbox, seconds_left, self.notes, timestamp_now())
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
        return await await_inbox(self)

    def is_done(self) -> bool:
        """Tell whether this turn, delegated or of a discussion, or attempt at a sample is over."""
        has_begun = self.state.turn or (self.start.attempt and self.is_opened)
        is_child = self.start.parent or self.start.attempt or self.start.discussion
        return bool(is_child and has_begun) and self.state.status not in UNFINISHED_STATUSES

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
            refused = [event.value for event in summaries if event.key == "state_refused"]
            self.refusals |= {value["note"]: value for value in refused if value.get("note")}
            del self.inbox[: step.from_inbox]
        if isinstance(step, Condense) and not summaries:
            self.notes = postpone_condensing(self.notes, self.state)

    def apply_failure(self, step: Step, error: StepError) -> None:
        """Apply the failure of a step; events that it still wrote are folded later."""
        if isinstance(step, Act | Delegate):
            self.notes = note_lost_call(self.notes, step.action_seq, describe_lost_call(error))
        elif isinstance(step, Ingest):
            workflow.logger.warning("No memories were put: `perdure memory ingest` does that.")
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

    def publish_status(self) -> None:
        """Update the details and search attributes that the Temporal UI shows."""
        workflow.set_current_details(
            status_markdown(self.conversation_id, self.start.user_id, self.state)
        )
        status = (self.state.status, self.state.spec_seq)
        if self.start.searchable and self.published != status:
            known = workflow.info().typed_search_attributes
            at = workflow.now().astimezone(UTC)
            workflow.upsert_search_attributes(
                changed_attributes(known, self.start.user_id, self.state, at)
            )
        self.published = status
