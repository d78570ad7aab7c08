"""The run of a batch or shard: a limited number of conversations at a time, within a budget."""

from temporalio import workflow
from temporalio.exceptions import ChildWorkflowError

from perdure.agent.loop.attempt import Allowance, AllowanceRequest, Attempt, AttemptSummary
from perdure.agent.loop.step_summary import shorten_summary
from perdure.evaluation.messages import (
    AwaitedConversation,
    BatchStart,
    CodeCheck,
    CodeCheckRequest,
    LimitsUpdate,
    LostAttempt,
)
from perdure.evaluation.progress import Progress
from perdure.evaluation.repeated_failures import FailureCount, resume_advice
from perdure.workflows.batch.attempts import (
    count_results,
    load_jobs,
    rescore_attempt,
    start_attempt,
    take_job,
)
from perdure.workflows.batch.background import (
    BackgroundTasks,
    cancel_workflow,
    publish,
    run_activity,
    signal_workflow,
)
from perdure.workflows.batch.shards import ParentBatch
from perdure.workflows.batch.state import (
    continuation,
    count_result,
    current_progress,
    find_repetition,
    has_time,
    load_state,
    stop_clock,
)
from perdure.workflows.ids import child_id
from perdure.workflows.step_failures import reason_of

MAX_STARTS_TOGETHER = 16
"""Most free slots to wait for, so that one workflow task starts several children."""

CHECKS_PATCH = "batch-checks"
"""The patch since which a batch checks its code, and pauses for every failure that repeats."""


class BatchRun:
    """The run of one batch, or of one shard of a batch."""

    def __init__(self, start: BatchStart) -> None:
        self.start = start
        self.state = load_state(start)
        self.tasks = BackgroundTasks()
        self.parent = ParentBatch(start, self.tasks)

    async def run(self) -> Progress:
        """Run all attempts. Raises ActivityError if the batch itself cannot be read."""
        state, tasks = self.state, self.tasks
        state.has_checks = workflow.patched(CHECKS_PATCH)
        if self.start.progress is None:
            await count_results(state)
            if state.has_checks:
                await self.check_code()
        if state.running:
            tasks.launch(self.await_conversations(list(state.running)))
        self.publish_progress()
        while not state.is_over:
            tasks.has_changed = False
            self.start_attempts()
            if self.is_history_long() and self.is_quiescent():
                workflow.continue_as_new(continuation(state))
            await workflow.wait_condition(lambda: tasks.has_changed or state.is_over)
            tasks.raise_error()
        return self.current_progress()

    async def check_code(self) -> None:
        """Pause until a worker can load all that the batch names."""
        request = CodeCheckRequest(user_id=self.start.user_id, name=self.start.name)
        while problem := (await run_activity("batch.check", request, CodeCheck)).problem:
            resume = f"perdure batch resume {self.start.name}"
            self.pause(f"{problem} No sample has run. Mend it, and then: `{resume}`.", blocked=True)
            await workflow.wait_condition(lambda: not self.state.is_paused)

    async def stop(self) -> None:
        """Cancel all conversations that run; recorded results stay."""
        self.tasks.cancel()
        stop_clock(self.state)
        for name in list(self.state.running):
            await cancel_workflow(child_id(name))
        self.state.running.clear()

    def start_attempts(self) -> None:
        """Start attempts in the free slots, several at a time to keep the history short.

        The choice depends only on the order in which attempts ended, not on how many ends one
        workflow task brings: a query may deliver some of them earlier than the replay does.
        """
        state = self.state
        if state.is_paused or self.is_history_long() or not has_time(state):
            return
        before = len(state.running)
        self.fill_free_slots()
        if len(state.running) > before:
            self.publish_progress()
        if not (state.job_queue or state.is_loading_jobs) and state.has_unloaded_jobs:
            state.is_loading_jobs = True
            self.tasks.launch(self.load_jobs())

    async def load_jobs(self) -> None:
        await load_jobs(self.state)
        self.start_attempts()

    def fill_free_slots(self) -> None:
        """Take jobs for the free slots, once there are enough of these."""
        state = self.state
        free = state.concurrency - len(state.running)
        queued = len(state.job_queue) + len(state.retry_queue)
        threshold = max(1, min(state.concurrency // 8, MAX_STARTS_TOGETHER))
        if free < min(threshold, max(1, queued)):
            return
        for _ in range(min(free, queued)):  # at 1.2 KB each: Temporal takes 4 MB per response
            taken = take_job(state)
            if taken is None:
                self.handle_shortage()
                return
            self.tasks.launch(self.run_attempt(*taken))

    async def run_attempt(self, name: str, job: Attempt, allowance: Allowance) -> None:
        """Make an attempt, and count its result."""
        state = self.state
        if state.is_rescoring:
            self.end_attempt(name, await rescore_attempt(self.start, job))
            return
        state.in_flight += 1
        child = await start_attempt(self.start, name, job)
        state.in_flight -= 1
        self.tasks.has_changed = True
        if child is None:  # it runs already, started by a lost workflow of this batch
            await signal_workflow(child_id(name), "grant", allowance)
            await self.await_conversations([name])
            return
        if state.is_held:
            await signal_workflow(child_id(name), "pause")
        try:
            end = AwaitedConversation(conversation_id=name, scored=(await child).scored)
        except ChildWorkflowError as error:
            end = AwaitedConversation(conversation_id=name, failure=reason_of(error))
        await self.handle_end(end)

    async def await_conversations(self, names: list[str]) -> None:
        """Wait for conversations that this run did not start."""
        remaining = set(names)
        while remaining:
            ends = await run_activity(
                "batch.follow",
                sorted(child_id(name).removeprefix("conv-") for name in remaining),
                list[AwaitedConversation],
                summary=f"conversations at work: {len(remaining)}",
            )
            for end in ends:
                remaining.discard(end.conversation_id)
                await self.handle_end(end)

    async def handle_end(self, end: AwaitedConversation) -> None:
        """Count the result of a conversation; start a lost one again."""
        state, name, scored = self.state, end.conversation_id, end.scored
        if scored is None and end.failure is None:
            state.retry_queue.appendleft(state.running.pop(name))
            self.tasks.has_changed = True
            return
        if scored is None:
            lost = LostAttempt(
                user_id=self.start.user_id,
                attempt=state.running[name],
                detail=end.failure or "",
            )
            state.in_flight += 1
            scored = await run_activity(
                "batch.lost",
                lost,
                AttemptSummary,
                summary=shorten_summary(f"sample {lost.attempt.sample}"),
            )
            state.in_flight -= 1
        self.end_attempt(name, scored)

    def end_attempt(self, name: str, scored: AttemptSummary) -> None:
        """Count the result of an attempt, and go on to the next ones."""
        state = self.state
        count_result(state, name, scored)
        self.pause_if_all_fail(scored)
        self.grant_requests()
        self.parent.report(state)
        self.start_attempts()
        # No later start would publish it.
        if state.is_paused or not (state.job_queue or state.retry_queue):
            self.publish_progress()
        self.tasks.has_changed = True

    def pause_if_all_fail(self, scored: AttemptSummary) -> None:
        """Pause the batch when attempts fail again and again for what somebody can mend."""
        repetition = find_repetition(self.state)
        if scored.status != "failed" or repetition is None or self.state.is_paused:
            return
        advice = resume_advice(scored.failure, self.start.name)
        cause = f"{scored.code}: {scored.detail}".rstrip(": .") + "."
        self.pause(f"{repetition}, the last one with {cause} {advice}", blocked=True)

    def pause(self, reason: str, blocked: bool = False) -> None:
        stop_clock(self.state)
        self.state.pause_reason, self.state.is_blocked = reason, blocked
        self.publish_progress()

    def hold(self) -> None:
        """Pause the batch and every conversation that runs."""
        if not self.state.is_blocked:
            self.pause(f"It was paused. To go on: perdure batch resume {self.start.name}")
        self.state.is_held = True
        self.signal_conversations("pause")

    def resume(self) -> None:
        state = self.state
        if state.is_held:
            self.signal_conversations("resume")
        stop_clock(state)
        state.pause_reason, state.is_held, state.is_blocked = None, False, False
        state.failures = FailureCount()
        self.grant_requests()
        self.publish_progress()

    def signal_conversations(self, name: str) -> None:
        for conversation in self.state.running:
            self.tasks.launch(signal_workflow(child_id(conversation), name))

    def update_limits(self, changes: LimitsUpdate) -> Progress:
        state = self.state
        state.concurrency = changes.concurrency or state.concurrency
        state.time = changes.time or state.time
        limit = state.budget.changed_limit(changes.cost, changes.tokens)
        if limit != state.budget.ledger.limit:
            self.set_limit(limit)
        self.publish_progress()
        return self.current_progress()

    def set_limit(self, allowance: Allowance) -> None:
        """Set the limit of spending; a batch that waits for it goes on."""
        self.state.budget.set_limit(allowance)
        self.parent.requested_limit = None
        if self.state.is_paused and not self.state.is_held:
            self.resume()
        self.grant_requests()
        self.tasks.has_changed = True

    def request_allowance(self, request: AllowanceRequest) -> None:
        """Take the request of an attempt that cannot go on within its allowance."""
        if request.holder in self.state.running:
            self.state.budget.request_more(request)
            self.grant_requests()

    def grant_requests(self) -> None:
        """Grant requests from what is left; if no attempt can go on, ask for more."""
        for name, allowance in self.state.budget.grant_requests().items():
            self.tasks.launch(signal_workflow(child_id(name), "grant", allowance))
        if self.state.budget.requests:
            self.handle_shortage()

    def handle_shortage(self) -> None:
        """Wait for what running attempts give back; if there is none, ask the batch or pause."""
        budget = self.state.budget
        if not budget.is_deadlocked(set(self.state.running)) or self.state.is_paused:
            return
        if self.start.part is not None:
            self.parent.request_limit(budget)
            return
        self.pause(
            f"The batch has spent {budget.spending_text}, and what is left is not enough to "
            f"go on: perdure batch retune {self.start.name} --cost … (or --tokens …)"
        )

    def publish_progress(self) -> None:
        self.tasks.launch(self._publish())  # in the order of the other tasks

    async def _publish(self) -> None:
        publish(self.current_progress())

    def current_progress(self) -> Progress:
        return current_progress(self.state)

    def is_history_long(self) -> bool:
        info = workflow.info()
        is_long = info.get_current_history_length() > self.start.long
        return is_long or info.is_continue_as_new_suggested()

    def is_quiescent(self) -> bool:
        """Tell whether nothing is in flight that the next run would miss."""
        state = self.state
        in_flight = state.in_flight or (state.is_rescoring and state.running)
        return not in_flight and workflow.all_handlers_finished()
