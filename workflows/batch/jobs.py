"""The jobs of a batch, which are its planned attempts: counting, loading and taking them."""

from temporalio import workflow

from perdure.agent.loop.attempt import Allowance
from perdure.evaluation.ledger import spent_amount
from perdure.evaluation.messages import (
    AttemptPage,
    AttemptPageRequest,
    BatchStart,
    CountRequest,
    PlannedAttempt,
    SampleSet,
)
from perdure.evaluation.progress import Progress, count_attempt
from perdure.events.base import TIMESTAMP_FORMAT
from perdure.workflows.batch.attempts import conversation_id_of
from perdure.workflows.batch.background import run_activity
from perdure.workflows.batch.state import BatchState

MAX_DEFERRED_RETRIES = 100
"""Retries in the queue from which on they go before first attempts."""


async def count_results(state: BatchState) -> None:
    """Count the attempts to make and the results that are there already."""
    start, budget = state.start, state.budget
    if not start.fresh or start.expected is None:
        request = CountRequest(of=_sample_set(start), first=start.first, end=start.end)
        state.progress = await run_activity("batch.survey", request, Progress)
        settled = {
            "settled": spent_amount(state.progress.spent),
            "count": state.progress.attempts,
        }
        budget.ledger = budget.ledger.model_copy(update=settled)
    started = {"started": workflow.now().strftime(TIMESTAMP_FORMAT)}
    state.progress = state.progress.model_copy(update=started)


async def load_jobs(state: BatchState) -> None:
    """Load the next page that has jobs."""
    while not state.job_queue and state.has_unloaded_jobs:
        request = AttemptPageRequest(
            of=_sample_set(state.start), place=state.next_place, mode=state.start.mode
        )
        page = await run_activity("batch.page", request, AttemptPage)
        state.job_queue.extend(page.jobs)
        state.next_place = page.then
    state.is_loading_jobs = False


def take_job(state: BatchState) -> tuple[str, PlannedAttempt, Allowance] | None:
    """Take a job from its queue and reserve its allowance; None if too little budget is left."""
    retry_first = len(state.retry_queue) >= MAX_DEFERRED_RETRIES or not state.job_queue
    queue = state.retry_queue if retry_first else state.job_queue
    job, name = queue[0], conversation_id_of(state.start, queue[0])
    allowance: Allowance | None = Allowance()
    if not state.is_rescoring:
        allowance = state.budget.reserve_allowance(name, state.start.most)
    if allowance is None:
        return None
    queue.popleft()
    if job.counted is not None:
        state.progress = count_attempt(state.progress, job.counted, -1)
    job = state.running[name] = job.model_copy(update={"counted": None})
    return name, job, allowance


def _sample_set(start: BatchStart) -> SampleSet:
    return SampleSet(**{name: getattr(start, name) for name in SampleSet.model_fields})
