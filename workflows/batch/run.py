"""Running the attempts of a batch, a limited number of conversations at a time."""

from temporalio import workflow
from temporalio.exceptions import ChildWorkflowError

from perdure.agent.loop.attempt import Allowance, Attempt, AttemptSummary
from perdure.evaluation.ledger import spent_amount
from perdure.evaluation.messages import (
    AttemptPage,
    AttemptPageRequest,
    AwaitedConversation,
    CountRequest,
    LostAttempt,
    SampleSet,
)
from perdure.evaluation.progress import Progress, add_spending, count_attempt
from perdure.evaluation.sample import attempt_conversation_id
from perdure.events.base import TIMESTAMP_FORMAT
from perdure.temporal.names import conversation_workflow_id
from perdure.workflows.batch.attempts import rescore_attempt, start_attempt
from perdure.workflows.batch.background import cancel_workflow, signal_workflow
from perdure.workflows.batch.budget import BatchBudget
from perdure.workflows.step_failures import reason_of

MAX_STARTS_TOGETHER = 16
"""Most free slots to wait for, so that one workflow task starts several children."""

FAILURES_BEFORE_PAUSE = 10
"""Consecutive failures that no sample is to blame for, after which a batch pauses."""

MAX_DEFERRED_RETRIES = 100
"""Retries in the queue from which on they go before first attempts."""


class BatchRun(BatchBudget):
    """The run of one batch, or of one shard of a batch."""

    async def run(self) -> Progress:
        """Run all attempts. Raises ActivityError if the batch itself cannot be read."""
        if self.start.progress is None:
            await self.count_results()
        if self.running:
            self.launch(self.await_conversations(list(self.running)))
        self.publish_progress()
        while not self.is_over():
            self.has_changed = False
            self.start_attempts()
            if self.is_history_long() and self.is_quiescent():
                workflow.continue_as_new(self.continuation())
            await workflow.wait_condition(lambda: self.has_changed or self.is_over())
            self.raise_error()
        return self.current_progress()

    async def count_results(self) -> None:
        """Count the attempts to make and the results that are there already."""
        start = self.start
        if not start.fresh or start.expected is None:
            request = CountRequest(of=self.sample_set(), first=start.first, end=start.end)
            self.progress = await self.run_activity("batch.survey", request, Progress)
            settled = {
                "settled": spent_amount(self.progress.spent),
                "count": self.progress.attempts,
            }
            self.budget.ledger = self.budget.ledger.model_copy(update=settled)
        started = workflow.now().strftime(TIMESTAMP_FORMAT)
        self.progress = self.progress.model_copy(update={"started": started})

    async def load_jobs(self) -> None:
        """Load the next jobs."""
        while not self.job_queue and self.next_place.chunk < self.start.end:
            request = AttemptPageRequest(
                of=self.sample_set(), place=self.next_place, mode=self.start.mode
            )
            page: AttemptPage = await self.run_activity("batch.page", request, AttemptPage)
            self.job_queue.extend(page.jobs)
            self.next_place = page.then
        self.is_loading_jobs = False
        self.start_attempts()

    def start_attempts(self) -> None:
        """Start attempts in the free slots, several at a time to keep the history short.

        The choice depends only on the order in which attempts ended, not on how many ends one
        workflow task brings: a query may deliver some of them earlier than the replay does.
        """
        if self.is_paused or self.is_history_long() or not self.has_time():
            return
        before = len(self.running)
        self.fill_free_slots()
        if len(self.running) > before:
            self.publish_progress()
        if not (self.job_queue or self.is_loading_jobs) and self.next_place.chunk < self.start.end:
            self.is_loading_jobs = True
            self.launch(self.load_jobs())

    def fill_free_slots(self) -> None:
        free = self.concurrency - len(self.running)
        queued = len(self.job_queue) + len(self.retry_queue)
        if free < min(self.start_threshold(), max(1, queued)):
            return
        for _ in range(min(free, queued)):  # at 1.2 KB each: Temporal takes 4 MB per response
            queue = (
                self.retry_queue
                if len(self.retry_queue) >= MAX_DEFERRED_RETRIES or not self.job_queue
                else self.job_queue
            )
            job = queue[0]
            name = attempt_conversation_id(self.start.user_id, job)
            allowance = (
                Allowance()
                if self.is_rescoring
                else self.budget.reserve_allowance(name, self.start.most)
            )
            if allowance is None:
                self.handle_shortage()
                return
            queue.popleft()
            if job.counted is not None:
                self.progress = count_attempt(self.progress, job.counted, -1)
            job = self.running[name] = job.model_copy(
                update={
                    "counted": None,
                    "scoring_timeout": self.start.scoring,
                    "scores_workspace": self.start.look,
                    "allowance": None if allowance == Allowance() else allowance,
                }
            )
            self.launch(self.run_attempt(name, job, allowance))

    def start_threshold(self) -> int:
        """Return how many free slots to wait for before filling them."""
        return max(1, min(self.concurrency // 8, MAX_STARTS_TOGETHER))

    async def run_attempt(self, name: str, job: Attempt, allowance: Allowance) -> None:
        """Make an attempt, and count its result."""
        if self.is_rescoring:
            self.count_attempt(name, job, await rescore_attempt(self.start, job))
            return
        self.start_count += 1
        try:
            child = await start_attempt(self.start, name, job)
        finally:
            self.start_count -= 1
            self.has_changed = True
        if child is None:  # it runs already, started by a lost workflow of this batch
            await signal_workflow(conversation_workflow_id(name), "grant", allowance)
            await self.await_conversations([name])
            return
        if self.is_held:
            await signal_workflow(conversation_workflow_id(name), "pause")
        try:
            end = AwaitedConversation(conversation_id=name, scored=(await child).scored)
        except ChildWorkflowError as error:
            end = AwaitedConversation(conversation_id=name, failure=reason_of(error))
        await self.handle_end(end)

    async def await_conversations(self, names: list[str]) -> None:
        """Wait for conversations that this run did not start."""
        remaining = set(names)
        while remaining:
            ends: list[AwaitedConversation] = await self.run_activity(
                "batch.follow", sorted(remaining), list[AwaitedConversation]
            )
            for end in ends:
                remaining.discard(end.conversation_id)
                await self.handle_end(end)

    async def handle_end(self, end: AwaitedConversation) -> None:
        """Count the result of a conversation; start a lost one again."""
        name, scored = end.conversation_id, end.scored
        job = self.running[name]
        if scored is None and end.failure is None:
            del self.running[name]
            self.retry_queue.appendleft(job)
            self.has_changed = True
            return
        if scored is None:
            lost = LostAttempt(user_id=self.start.user_id, attempt=job, detail=end.failure or "")
            self.recording_count += 1
            try:
                scored = await self.run_activity("batch.lost", lost, AttemptSummary)
            finally:
                self.recording_count -= 1
        self.count_attempt(name, job, scored)

    def count_attempt(self, name: str, job: Attempt, scored: AttemptSummary) -> None:
        """Count the result of an attempt, or queue its retry."""
        del self.running[name]
        if not self.is_rescoring:
            self.budget.settle(name, spent_amount(scored.usage))
            self.progress = add_spending(self.progress, scored)
        if self.should_retry(job, scored):
            self.retry_queue.append(job.model_copy(update={"number": job.number + 1}))
        else:
            self.progress = count_attempt(self.progress, scored)
            finished = {"finished": self.progress.finished + 1}
            self.progress = self.progress.model_copy(update=finished)
        self.pause_if_all_fail(scored)
        self.grant_requests()
        self.report_to_parent()
        self.start_attempts()
        # No later start would publish it.
        if self.is_paused or not (self.job_queue or self.retry_queue):
            self.publish_progress()
        self.has_changed = True

    def should_retry(self, job: Attempt, scored: AttemptSummary) -> bool:
        retries = self.start.retries
        failed = scored.status == "failed" and scored.failure in retries.on
        return failed and job.number < retries.times and not self.is_rescoring

    def pause_if_all_fail(self, scored: AttemptSummary) -> None:
        """Pause the batch when every attempt fails for a reason that no sample is to blame for."""
        is_external = scored.failure in ("infrastructure", "configuration")
        self.consecutive_failures = (
            self.consecutive_failures + 1 if scored.status == "failed" and is_external else 0
        )
        if (
            self.consecutive_failures >= max(FAILURES_BEFORE_PAUSE, self.concurrency)
            and not self.is_paused
        ):
            self.pause(
                f"{self.consecutive_failures} attempts in a row failed, "
                f"the last one with {scored.code}: "
                f"{scored.detail} Mend that, and then: perdure batch resume {self.start.name}"
            )

    async def stop(self) -> Progress:
        """Cancel all conversations that run; recorded results stay."""
        self.cancel_tasks()
        self.stop_clock()
        for name in list(self.running):
            await cancel_workflow(conversation_workflow_id(name))
        self.running.clear()
        return self.current_progress().model_copy(
            update={"status": "stopped", "reason": "It was cancelled."}
        )

    def sample_set(self) -> SampleSet:
        start = self.start
        return SampleSet(
            name=start.name,
            user_id=start.user_id,
            samples=start.samples,
            epochs=start.epochs,
            fresh=start.fresh,
        )
