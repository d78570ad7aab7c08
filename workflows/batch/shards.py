"""A large batch, run as shards that are child workflows."""

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError, ChildWorkflowError, WorkflowAlreadyStartedError

from perdure.agent.loop.attempt import Allowance, AllowanceRequest
from perdure.evaluation.ledger import Amount, Budget, Ledger, spent_amount
from perdure.evaluation.messages import BatchStart, LimitsUpdate
from perdure.evaluation.progress import Progress, merge_progress
from perdure.temporal.timeouts import BATCH_TASK_TIMEOUT
from perdure.workflows.batch.attempts import priority_of
from perdure.workflows.batch.background import BackgroundTasks, publish, signal_workflow
from perdure.workflows.batch.state import BatchState, current_progress
from perdure.workflows.step_failures import reason_of

INITIAL_SHARE = 0.5
"""Share of the limit that the shards get at first; they request the rest."""

REPORT_INTERVAL = 500
"""Finished attempts after which a shard reports its progress."""


class ParentBatch:
    """The batch of a shard, which gets reports of progress and requests for a larger limit."""

    def __init__(self, start: BatchStart, tasks: BackgroundTasks) -> None:
        self.part = start.part
        self.tasks = tasks
        self.reported_count = start.progress.finished if start.progress else 0
        self.requested_limit: Allowance | None = None

    def report(self, state: BatchState) -> None:
        """Report the progress of a shard at intervals."""
        finished = state.progress.finished
        if self.part is not None and finished - self.reported_count >= REPORT_INTERVAL:
            self.reported_count = finished
            self._signal("report", self.part, current_progress(state))

    def request_limit(self, budget: Budget) -> None:
        """Request a limit with which an attempt can go on, once."""
        limit, used = budget.sufficient_limit(), budget.ledger.committed
        if limit == self.requested_limit:
            return
        self.requested_limit = limit
        spent = Allowance(cost=used.cost, tokens=used.tokens)
        holder = workflow.info().workflow_id
        self._signal("ask", AllowanceRequest(holder=holder, spent=spent, needed=limit))

    def _signal(self, name: str, *value: Any) -> None:
        if (parent := workflow.info().parent) is not None:
            self.tasks.launch(signal_workflow(parent.workflow_id, name, *value))


class ShardedBatch:
    """The shards of a batch and their progress; each shard runs its own range of samples."""

    def __init__(self, start: BatchStart) -> None:
        self.start = start
        self.tasks = BackgroundTasks()
        self.budget = Budget(start.ledger)
        self.concurrency = start.concurrency
        self.pause_reason: str | None = None
        self.is_held = False
        self.progress_by_shard: dict[int, Progress] = {}
        self.unfinished = set(range(start.parts))

    async def run(self) -> Progress:
        """Run all shards. Raises ApplicationError after the last one if any failed."""
        self.publish_progress()
        failures = await asyncio.gather(*map(self.run_shard, range(self.start.parts)))
        if reasons := list(filter(None, failures)):
            raise ApplicationError(reasons[0], type="PartFailed", non_retryable=True)
        return self.current_progress()

    def workflow_id(self, index: int) -> str:
        return f"{workflow.info().workflow_id}/{index}"

    async def run_shard(self, index: int) -> str | None:
        """Run a shard to its end; return why it failed, or None."""
        try:
            progress = await workflow.execute_child_workflow(
                "Batch",
                self.shard_start(index),
                id=self.workflow_id(index),
                result_type=Progress,
                task_timeout=BATCH_TASK_TIMEOUT,
                parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
                priority=priority_of(self.start),
                static_summary=f"{self.start.name}, part {index + 1} of {self.start.parts}",
            )
        except (ChildWorkflowError, WorkflowAlreadyStartedError) as error:
            return f"Part {index} of the batch failed: {reason_of(error)}"
        self.progress_by_shard[index] = progress
        self.unfinished.discard(index)
        self.budget.settle(self.workflow_id(index), spent_amount(progress.spent))
        self.grant_requests()
        self.publish_progress()
        return None

    def shard_start(self, index: int) -> BatchStart:
        start, parts = self.start, self.start.parts
        chunks = start.end - start.first
        return start.model_copy(
            update={
                "part": index,
                "parts": 1,
                "first": start.first + chunks * index // parts,
                "end": start.first + chunks * (index + 1) // parts,
                "expected": None,
                "concurrency": _share_of(self.concurrency, parts, index),
                "ledger": Ledger(limit=self.reserve_share(index)),
            }
        )

    def reserve_share(self, index: int) -> Allowance:
        """Reserve what a shard may spend before it requests more."""
        limit, share = self.budget.ledger.limit, INITIAL_SHARE / self.start.parts
        amount = Amount(cost=(limit.cost or 0) * share, tokens=int((limit.tokens or 0) * share))
        allowance = self.budget.reserve(self.workflow_id(index), amount)
        assert allowance is not None, "half of the limit is left for all shards together"
        return allowance

    def update_progress(self, index: int, progress: Progress) -> None:
        self.progress_by_shard[index] = progress
        self.publish_progress()

    def publish_progress(self) -> None:
        publish(self.current_progress())

    def request_allowance(self, request: AllowanceRequest) -> None:
        self.budget.request_more(request)
        self.grant_requests()

    def grant_requests(self) -> None:
        for name, reserved in self.budget.grant_requests().items():
            self.tasks.launch(signal_workflow(name, "grant", reserved))
        running = {self.workflow_id(index) for index in self.unfinished}
        stuck = self.budget.requests and self.budget.is_deadlocked(running)
        if stuck and self.pause_reason is None:
            self.pause_reason = (
                "What is left of the batch's budget is not enough to go on: "
                f"perdure batch retune {self.start.name} --cost … (or --tokens …)"
            )
            self.publish_progress()

    def hold(self) -> None:
        self.pause_reason = f"It was paused. To go on: perdure batch resume {self.start.name}"
        self.is_held = True
        self.signal_shards("pause")
        self.publish_progress()

    def resume(self) -> None:
        self.pause_reason, self.is_held = None, False
        self.signal_shards("resume")
        self.grant_requests()
        self.publish_progress()

    def update_limits(self, changes: LimitsUpdate) -> Progress:
        self.concurrency = changes.concurrency or self.concurrency
        for index in self.unfinished if changes.concurrency or changes.time else ():
            share = _share_of(self.concurrency, self.start.parts, index)
            changed = LimitsUpdate(concurrency=share, time=changes.time)
            self.tasks.launch(signal_workflow(self.workflow_id(index), "tune", changed))
        limit = self.budget.changed_limit(changes.cost, changes.tokens)
        if limit != self.budget.ledger.limit:
            self.budget.set_limit(limit)
            self.pause_reason = self.pause_reason if self.is_held else None
            self.grant_requests()
        self.publish_progress()
        return self.current_progress()

    def current_progress(self) -> Progress:
        """Return the sum of the progress that the shards reported last."""
        whole = merge_progress(self.start.name, list(self.progress_by_shard.values()))
        limit = self.budget.ledger.limit
        paused = "paused" if self.pause_reason else "running"
        return whole.model_copy(
            update={
                "expected": max(self.start.expected or 0, whole.expected),
                "status": paused if self.unfinished else whole.status,
                "reason": self.pause_reason or whole.reason,
                "concurrency": self.concurrency,
                "cost": limit.cost,
                "tokens": limit.tokens,
                "parts": self.start.parts,
            }
        )

    async def stop(self) -> None:
        """Leave the shards to Temporal, which cancels them."""
        self.tasks.cancel()

    def signal_shards(self, name: str) -> None:
        for index in self.unfinished:
            self.tasks.launch(signal_workflow(self.workflow_id(index), name))


def _share_of(whole: int, parts: int, index: int) -> int:
    """Return a shard's share, at least 1: with 0 it would never end."""
    return max(1, whole * (index + 1) // parts - whole * index // parts)
