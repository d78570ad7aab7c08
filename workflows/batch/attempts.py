"""Starting attempts at samples as conversations, and scoring them again."""

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import (
    Priority,
    SearchAttributePair,
    TypedSearchAttributes,
)
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.workflow import ChildWorkflowHandle

from perdure.agent.loop.attempt import Attempt, AttemptSummary
from perdure.agent.loop.start import ConversationStatus, Start
from perdure.evaluation.messages import BatchStart, RescoreRequest
from perdure.temporal.names import conversation_workflow_id
from perdure.temporal.search_attributes import BATCH, MODEL, STATUS, USER
from perdure.temporal.timeouts import HEARTBEAT_TIMEOUT, TASK_TIMEOUT, UNLIMITED_RETRIES

MAX_FAIRNESS_KEY_BYTES = 64
"""Temporal's limit on the length of a fairness key."""


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
    )
    try:
        return await workflow.start_child_workflow(
            "Conversation",
            child_start,
            id=conversation_workflow_id(name),
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
    """Score an attempt again from its log."""
    scored: AttemptSummary = await workflow.execute_activity(
        "sample.rescore",
        RescoreRequest(user_id=start.user_id, attempt=attempt),
        result_type=AttemptSummary,
        heartbeat_timeout=HEARTBEAT_TIMEOUT,
        start_to_close_timeout=timedelta(seconds=60 + attempt.scoring_timeout),
        retry_policy=UNLIMITED_RETRIES,
        priority=priority_of(start),
    )
    return scored


def priority_of(start: BatchStart) -> Priority:
    """Return the priority of a batch: people come first, and batches share the rest fairly."""
    key = f"batch-{start.name}".encode()[:MAX_FAIRNESS_KEY_BYTES].decode(errors="ignore")
    return Priority(priority_key=start.priority, fairness_key=key)


def _search_attributes(start: BatchStart) -> TypedSearchAttributes | None:
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
