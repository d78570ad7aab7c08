"""The state of a batch or shard that runs: queues, pauses, clock and progress."""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

from temporalio import workflow

from perdure.agent.loop.attempt import Attempt, AttemptSummary
from perdure.evaluation.ledger import Budget, spent_amount
from perdure.evaluation.messages import BatchStart, SamplePosition
from perdure.evaluation.progress import (
    MAX_NAMES_AT_WORK,
    BatchStatus,
    Progress,
    add_spending,
    count_attempt,
)
from perdure.evaluation.repeated_failures import DEFAULT_PAUSE_AFTER, MENDABLE_KINDS, FailureCount


@dataclass
class BatchState:
    """The state of one run of the workflow; `continuation` hands it over to the next."""

    start: BatchStart
    budget: Budget
    progress: Progress
    concurrency: int
    time: float | None
    next_place: SamplePosition
    """The position from which the next jobs are loaded."""
    retry_queue: deque[Attempt]
    running: dict[str, Attempt]
    """Attempts by conversation id."""
    clock_start: datetime
    """The moment up to which `progress` has counted the seconds at work."""
    pause_reason: str | None
    is_held: bool
    """An operator has paused the batch, and with it its conversations."""
    failures: FailureCount
    is_blocked: bool = False
    """It has paused for failures or for code that cannot be loaded."""
    has_checks: bool = False
    """Its code is checked, and every failure that repeats pauses it: not in older histories."""
    job_queue: deque[Attempt] = field(default_factory=deque)
    is_loading_jobs: bool = False
    in_flight: int = 0
    """Conversations that are being started, and lost attempts that are being recorded."""
    out_of_time: bool = False

    @property
    def is_paused(self) -> bool:
        return self.pause_reason is not None

    @property
    def is_rescoring(self) -> bool:
        return self.start.mode == "rescore"

    @property
    def has_unloaded_jobs(self) -> bool:
        return self.next_place.chunk < self.start.end

    @property
    def is_over(self) -> bool:
        left = self.job_queue or self.retry_queue or self.has_unloaded_jobs
        return not self.running and (self.out_of_time or not left)


def load_state(start: BatchStart) -> BatchState:
    return BatchState(
        start=start,
        budget=Budget(start.ledger, start.asking),
        progress=start.progress or Progress(name=start.name, expected=start.expected or 0),
        concurrency=start.concurrency,
        time=start.time,
        next_place=start.place or SamplePosition(chunk=start.first),
        retry_queue=deque(start.again),
        running=dict(start.running),
        clock_start=workflow.now(),
        pause_reason=start.pause,
        is_held=start.held,
        failures=FailureCount(start.in_a_row, start.judged, start.judged_failures),
        is_blocked=start.blocked,
    )


def continuation(state: BatchState) -> BatchStart:
    """Return the input of the next run, which loads the queued jobs again."""
    place = state.next_place
    if state.job_queue:
        first = state.job_queue[0]
        place = SamplePosition(chunk=first.chunk, line=first.line, epoch=first.epoch)
    stop_clock(state)
    return state.start.model_copy(
        update={
            "ledger": state.budget.ledger,
            "asking": state.budget.requests,
            "concurrency": state.concurrency,
            "time": state.time,
            "pause": state.pause_reason,
            "held": state.is_held,
            "in_a_row": state.failures.in_a_row,
            "judged": state.failures.attempts,
            "judged_failures": state.failures.failures,
            "blocked": state.is_blocked,
            "again": tuple(state.retry_queue),
            "place": place,
            "running": state.running,
            "progress": state.progress,
        }
    )


def count_result(state: BatchState, name: str, scored: AttemptSummary) -> None:
    """Count the result of an attempt, or queue its retry."""
    job, retries = state.running.pop(name), state.start.retries
    failed = scored.status == "failed"
    if not state.is_rescoring:
        state.budget.settle(name, spent_amount(scored.usage))
        state.progress = add_spending(state.progress, scored)
    may_retry = job.number < retries.times and not state.is_rescoring
    if failed and scored.failure in retries.on and may_retry:
        state.retry_queue.append(job.model_copy(update={"number": job.number + 1}))
    else:
        finished = {"finished": state.progress.finished + 1}
        state.progress = count_attempt(state.progress, scored).model_copy(update=finished)
    state.failures.add(failed and scored.failure in _mendable_kinds(state))


def find_repetition(state: BatchState) -> str | None:
    """Say how often attempts have failed; None while that is no reason to pause."""
    default = max(DEFAULT_PAUSE_AFTER, state.concurrency)
    pause_after = state.start.pause_after or default
    if not state.has_checks and state.failures.in_a_row < default:
        return None  # no majority
    return state.failures.describe_repetition(pause_after)


def _mendable_kinds(state: BatchState) -> Collection[str]:
    """Return the kinds of failures that pause a batch when they repeat."""
    if not state.has_checks:
        return ("infrastructure", "configuration")
    return ("scorer",) if state.is_rescoring else MENDABLE_KINDS


def current_progress(state: BatchState) -> Progress:
    """Return the progress at this moment."""
    ledger, reason = state.budget.ledger, state.pause_reason
    status: BatchStatus = "paused" if state.is_paused else "running"
    if state.is_over:
        status = "stopped" if state.out_of_time else "finished"
    if state.out_of_time:
        reason = f"Its {state.time:g} s are over: run it again with a larger batch_limits.time."
    return state.progress.model_copy(
        update={
            "status": status,
            "reason": reason,
            "blocked": state.is_blocked and not state.is_over,
            "at_work": tuple(
                islice((job.sample for job in state.running.values()), MAX_NAMES_AT_WORK)
            ),
            "running": len(state.running),
            "seconds": elapsed_seconds(state),
            "concurrency": state.concurrency,
            "cost": ledger.limit.cost,
            "tokens": ledger.limit.tokens,
            "reserved": sum(amount.cost for amount in ledger.reserved.values()),
        }
    )


def has_time(state: BatchState) -> bool:
    """Tell whether time is left, and note it if there is none."""
    state.out_of_time = state.time is not None and elapsed_seconds(state) >= state.time
    return not state.out_of_time


def elapsed_seconds(state: BatchState) -> float:
    """Return the working time in seconds, without pauses."""
    if state.is_paused:
        return state.progress.seconds
    return state.progress.seconds + (workflow.now() - state.clock_start) / timedelta(seconds=1)


def stop_clock(state: BatchState) -> None:
    """Count the working time until now."""
    state.progress = state.progress.model_copy(update={"seconds": elapsed_seconds(state)})
    state.clock_start = workflow.now()
