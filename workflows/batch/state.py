"""The state of a batch or shard that runs: jobs, pauses, clock and progress."""

from collections import deque
from datetime import timedelta
from typing import Any

from temporalio import workflow

from perdure.agent.loop.attempt import Allowance, Attempt
from perdure.evaluation.budget import Budget
from perdure.evaluation.messages import BatchStart, SamplePosition
from perdure.evaluation.progress import PROGRESS_MEMO, BatchStatus, Progress
from perdure.temporal.names import conversation_workflow_id
from perdure.workflows.batch.background import BackgroundTasks, signal_workflow

REPORT_INTERVAL = 500
"""Finished attempts after which a shard reports its progress."""


class BatchState(BackgroundTasks):
    """The state of a workflow run, handed over when it continues as new."""

    def __init__(self, start: BatchStart) -> None:
        super().__init__()
        self.start = start
        self.budget = Budget(start.ledger, start.asking)
        self.concurrency = start.concurrency
        self.time = start.time
        self.pause_reason = start.pause
        self.is_held = start.held
        self.consecutive_failures = start.in_a_row
        self.job_queue: deque[Attempt] = deque()
        self.retry_queue: deque[Attempt] = deque(start.again)
        self.next_place = start.place or SamplePosition(chunk=start.first)
        self.running: dict[str, Attempt] = dict(start.running)
        self.start_count = 0
        self.is_loading_jobs = False
        self.recording_count = 0
        self.progress = start.progress or Progress(name=start.name, expected=start.expected or 0)
        self.clock_start = workflow.now()
        self.out_of_time = False
        self.requested_limit: Allowance | None = None
        self.reported_count = self.progress.finished

    def publish_progress(self) -> None:
        """Publish the progress in the workflow's memo, which is read without a query.

        On a worker that has evicted the workflow, a query applies its newest events before their
        turn, and the commands that follow may come in another order than in a replay (sdk-core
        0.5). Reading the memo runs no workflow code.
        """
        self.launch(self._upsert_memo())  # in the order of the other tasks

    async def _upsert_memo(self) -> None:
        memo = self.current_progress().model_dump(
            mode="json", exclude_none=True, exclude_defaults=True
        )
        workflow.upsert_memo({PROGRESS_MEMO: memo})

    def hold(self) -> None:
        """Pause the batch and every conversation that runs."""
        self.pause(f"It was paused. To go on: perdure batch resume {self.start.name}")
        self.is_held = True
        for name in self.running:
            self.launch(signal_workflow(conversation_workflow_id(name), "pause"))

    def pause(self, reason: str) -> None:
        self.stop_clock()
        self.pause_reason = reason
        self.publish_progress()

    def stop_clock(self) -> None:
        self.progress = self.progress.model_copy(update={"seconds": self.elapsed_seconds()})
        self.clock_start = workflow.now()
        self.has_changed = True

    def current_progress(self) -> Progress:
        """Return the progress at this moment."""
        ledger = self.budget.ledger
        return self.progress.model_copy(
            update={
                "status": self.status(),
                "reason": self.reason(),
                "running": len(self.running),
                "seconds": self.elapsed_seconds(),
                "concurrency": self.concurrency,
                "cost": ledger.limit.cost,
                "tokens": ledger.limit.tokens,
                "reserved": sum(amount.cost for amount in ledger.reserved.values()),
            }
        )

    def status(self) -> BatchStatus:
        if self.is_over():
            return "stopped" if self.out_of_time else "finished"
        return "paused" if self.is_paused else "running"

    def reason(self) -> str | None:
        if self.out_of_time:
            return f"Its {self.time:g} s are over: run it again with a larger batch_limits.time."
        return self.pause_reason

    @property
    def is_paused(self) -> bool:
        return self.pause_reason is not None

    def is_over(self) -> bool:
        if self.running or self.recording_count:
            return False
        nothing_left = (
            not (self.job_queue or self.retry_queue) and self.next_place.chunk >= self.start.end
        )
        return self.out_of_time or nothing_left

    def elapsed_seconds(self) -> float:
        """Return the working time in seconds, without pauses."""
        if self.is_paused:
            return self.progress.seconds
        return self.progress.seconds + (workflow.now() - self.clock_start) / timedelta(seconds=1)

    def has_time(self) -> bool:
        self.out_of_time = self.time is not None and self.elapsed_seconds() >= self.time
        return not self.out_of_time

    def report_to_parent(self) -> None:
        """Report the progress of a shard to its batch at intervals."""
        if (
            self.start.part is not None
            and self.progress.finished - self.reported_count >= REPORT_INTERVAL
        ):
            self.reported_count = self.progress.finished
            self.signal_parent("report", self.start.part, self.current_progress())

    def signal_parent(self, name: str, *value: Any) -> None:
        parent = workflow.info().parent
        if parent is not None:
            self.launch(signal_workflow(parent.workflow_id, name, *value))

    def continuation(self) -> BatchStart:
        first = self.job_queue[0] if self.job_queue else None
        then = (
            SamplePosition(chunk=first.chunk, line=first.line, epoch=first.epoch)
            if first
            else self.next_place
        )
        self.stop_clock()
        return self.start.model_copy(
            update={
                "ledger": self.budget.ledger,
                "asking": self.budget.requests,
                "concurrency": self.concurrency,
                "time": self.time,
                "pause": self.pause_reason,
                "held": self.is_held,
                "in_a_row": self.consecutive_failures,
                "again": tuple(self.retry_queue),
                "place": then,
                "running": self.running,
                "progress": self.progress,
            }
        )

    def is_history_long(self) -> bool:
        info = workflow.info()
        return (
            info.get_current_history_length() > self.start.long
            or info.is_continue_as_new_suggested()
        )

    def is_quiescent(self) -> bool:
        """Tell whether nothing is in flight that the next run would miss."""
        in_flight = self.start_count or self.recording_count or (self.is_rescoring and self.running)
        return not in_flight and workflow.all_handlers_finished()

    @property
    def is_rescoring(self) -> bool:
        return self.start.mode == "rescore"
