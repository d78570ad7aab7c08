"""How a batch has an attempt made: by a conversation, or of its scoring alone."""

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import (
    Priority,
    RetryPolicy,
    SearchAttributePair,
    TypedSearchAttributes,
)
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.workflow import ChildWorkflowHandle

from agent.start import Snapshot, Start
from agent.trial import Scored, Trial
from evaluation.running import BatchStart, Job, Rescoring
from workflows.operators import BATCH, MODEL, STATUS, USER

TASK_TIMEOUT = timedelta(seconds=5)
"""How soon a workflow task goes to another worker when its own is lost."""

SILENT = timedelta(seconds=5)

PATIENT = RetryPolicy(
    initial_interval=timedelta(milliseconds=500), maximum_interval=timedelta(seconds=30)
)

FAIRNESS = 64
"""Bytes that Temporal takes of what one is fair to."""


async def attempted(
    start: BatchStart, name: str, job: Job, trial: Trial
) -> ChildWorkflowHandle[Any, Snapshot] | None:
    """Begin the conversation; None where it runs already.

    It outlives the run of the workflow that began it.
    """
    begun = Start(
        conversation_id=name,
        user_id=start.user_id,
        trial=trial,
        searchable=start.searchable,
        lanes=start.lanes,
    )
    try:
        return await workflow.start_child_workflow(
            "Conversation",
            begun,
            id=f"conv-{name}",
            result_type=Snapshot,
            task_timeout=TASK_TIMEOUT,
            parent_close_policy=workflow.ParentClosePolicy.ABANDON,
            search_attributes=_found_by(start),
            priority=priority_of(start),
            static_summary=f"{start.name} · {job.sample[:60]} · epoch {job.epoch}",
        )
    except WorkflowAlreadyStartedError:
        return None


async def rescored_by(start: BatchStart, job: Job, trial: Trial) -> Scored:
    """Have an attempt scored again from its log."""
    scored: Scored = await workflow.execute_activity(
        "sample.rescore",
        Rescoring(user_id=start.user_id, trial=trial, sample=job.sample),
        result_type=Scored,
        heartbeat_timeout=SILENT,
        start_to_close_timeout=timedelta(seconds=60 + trial.scoring),
        retry_policy=PATIENT,
        priority=priority_of(start),
    )
    return scored


def priority_of(start: BatchStart) -> Priority:
    """People come before batches, and batches share what is left."""
    key = f"batch-{start.name}".encode()[:FAIRNESS].decode(errors="ignore")
    return Priority(priority_key=start.priority, fairness_key=key)


def _found_by(start: BatchStart) -> TypedSearchAttributes | None:
    if not start.searchable:
        return None
    return TypedSearchAttributes(
        [
            SearchAttributePair(BATCH, start.name),
            SearchAttributePair(USER, start.user_id),
            SearchAttributePair(STATUS, "idle"),
            SearchAttributePair(MODEL, start.model),
        ]
    )
