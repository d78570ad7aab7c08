"""Attempts at samples: counting, loading, taking and starting them, and scoring them again."""

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import Priority, SearchAttributePair, TypedSearchAttributes
from temporalio.exceptions import ActivityError, WorkflowAlreadyStartedError
from temporalio.workflow import ChildWorkflowHandle

from perdure.agent.loop.attempt import Allowance, Attempt, AttemptSummary
from perdure.agent.loop.start import MAX_RUN_EVENTS, ConversationStatus, Start
from perdure.agent.loop.step_summary import shorten_summary
from perdure.evaluation.ledger import spent_amount
from perdure.evaluation.messages import (
    AttemptPage,
    AttemptPageRequest,
    BatchStart,
    CountRequest,
    RescoreRequest,
    SampleSet,
)
from perdure.evaluation.progress import Progress, count_attempt
from perdure.evaluation.sample import attempt_conversation_id
from perdure.events.base import TIMESTAMP_FORMAT
from perdure.temporal.fairness import make_key
from perdure.temporal.names import batch_workflow_id
from perdure.temporal.search_attributes import BATCH, MODEL, STATUS, USER
from perdure.temporal.timeouts import TASK_TIMEOUT
from perdure.workflows.batch.background import run_activity
from perdure.workflows.batch.state import BatchState
from perdure.workflows.ids import child_id
from perdure.workflows.model_queues import KnownModelQueues
from perdure.workflows.step_failures import is_graded
from perdure.workflows.step_runner import PLACEHOLDER_SPEC

MAX_DEFERRED_RETRIES = 100
"""Retries in the queue from which on they go before first attempts."""


async def count_results(state: BatchState) -> None:
    """Count the attempts to make and the results that are there already."""
    start, budget = state.start, state.budget
    if not start.fresh or start.expected is None:
        request = CountRequest(of=_sample_set(start), first=start.first, end=start.end)
        state.progress = await run_activity(
            "batch.survey", request, Progress, summary="count the attempts on record"
        )
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
        page = await run_activity("batch.page", request, AttemptPage, summary="attempts to make")
        state.job_queue.extend(page.jobs)
        state.next_place = page.then
    state.is_loading_jobs = False


def take_job(state: BatchState) -> tuple[str, Attempt, Allowance] | None:
    """Take a job from its queue and reserve its allowance; None if too little budget is left."""
    retry_first = len(state.retry_queue) >= MAX_DEFERRED_RETRIES or not state.job_queue
    queue = state.retry_queue if retry_first else state.job_queue
    job, start = queue[0], state.start
    name = attempt_conversation_id(start.user_id, job)
    allowance: Allowance | None = Allowance()
    if not state.is_rescoring:
        allowance = state.budget.reserve_allowance(name, start.most)
    if allowance is None:
        return None
    queue.popleft()
    if job.counted is not None:
        state.progress = count_attempt(state.progress, job.counted, -1)
    changes = {
        "counted": None,
        "scoring_timeout": start.scoring,
        "scores_workspace": start.look,
        "allowance": None if allowance == Allowance() else allowance,
    }
    job = state.running[name] = job.model_copy(update=changes)
    return name, job, allowance


async def start_attempt(
    start: BatchStart, name: str, attempt: Attempt
) -> ChildWorkflowHandle[Any, ConversationStatus] | None:
    """Start the conversation of an attempt; return None if it runs already.

    The conversation outlives the workflow run that started it.
    """
    child_start = Start(
        conversation_id=name,
        user_id=start.user_id,
        attempt=attempt,
        searchable=start.searchable,
        model_queues=start.lanes,
        max_run_events=MAX_RUN_EVENTS,
    )
    try:
        return await workflow.start_child_workflow(
            "Conversation",
            child_start,
            id=child_id(name),
            result_type=ConversationStatus,
            task_timeout=TASK_TIMEOUT,
            parent_close_policy=workflow.ParentClosePolicy.ABANDON,
            search_attributes=_search_attributes(start),
            priority=priority_of(start),
            static_summary=f"{start.name} · {attempt.sample[:60]} · epoch {attempt.epoch}",
        )
    except WorkflowAlreadyStartedError:
        return None


async def rescore_attempt(start: BatchStart, attempt: Attempt) -> AttemptSummary:
    """Score an attempt again from its log; a rate-limited grading model has its own queue."""

    async def run(options: workflow.ActivityConfig) -> AttemptSummary:
        return await run_activity(
            "sample.rescore",
            RescoreRequest(user_id=start.user_id, attempt=attempt),
            AttemptSummary,
            time_limit=timedelta(seconds=60 + attempt.scoring_timeout),
            **options,
        )

    options = workflow.ActivityConfig(
        priority=priority_of(start), summary=shorten_summary(f"sample {attempt.sample}")
    )
    queues = KnownModelQueues(start.lanes)
    while True:
        try:
            scored: AttemptSummary = await queues.route_key(None, PLACEHOLDER_SPEC, options, run)
            return scored
        except ActivityError as error:
            if not is_graded(error):
                raise


def priority_of(start: BatchStart) -> Priority:
    """Return the priority of a batch: people come first, and batches share the rest fairly."""
    key = make_key(batch_workflow_id(start.user_id, start.name))
    return Priority(priority_key=start.priority, fairness_key=key)


def _search_attributes(start: BatchStart) -> TypedSearchAttributes | None:
    if not start.searchable:
        return None
    values = {BATCH: start.name, USER: start.user_id, STATUS: "idle", MODEL: start.model}
    return TypedSearchAttributes([SearchAttributePair(key, value) for key, value in values.items()])


def _sample_set(start: BatchStart) -> SampleSet:
    return SampleSet(**{name: getattr(start, name) for name in SampleSet.model_fields})
