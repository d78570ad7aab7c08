"""The diagnosis of a conversation that does not progress, from Temporal and the store."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from temporalio.api.enums.v1 import (
    PendingActivityState,
    PendingWorkflowTaskState,
    WorkflowExecutionStatus,
)
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import (
    DescribeWorkflowExecutionResponse as WorkflowDescription,
)

from perdure.client.diagnosis.failures import (
    load_heartbeat,
    load_step_failure,
    load_task_failure,
    load_workflow_failure,
)
from perdure.client.diagnosis.trouble import (
    STEP_SCHEDULED,
    Trouble,
    delegate_trouble,
    no_worker,
    seconds_since,
    step_failed,
    step_paused,
    step_silent,
    store_unavailable,
    workflow_ended,
    workflow_failed,
    workflow_paused,
    workflow_task_failed,
    workflow_task_lost,
)
from perdure.client.workflow import QUERY_TIMEOUT, ConversationWorkflow, is_running
from perdure.storage.errors import StoreError
from perdure.storage.keys import is_conversation_id
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.trouble import load_trouble
from perdure.temporal.names import conversation_id_of

MAX_PICKUP_DELAY = 10.0
"""Seconds that work may wait for a worker before that counts as trouble."""

MAX_SILENCE = 45.0
"""Seconds that a step may be silent before that counts as trouble."""

RETRY_GRACE = 2.0
"""Seconds after a first failure in which a retry may still succeed."""

MAX_CHILDREN_CHECKED = 3
"""The number of delegates or samples to check when nothing else is wrong."""

WORKFLOW_FAILED = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_FAILED
WORKFLOW_PAUSED = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_PAUSED
STEP_STARTED = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
TASK_SCHEDULED = PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_SCHEDULED


class DiagnosisOptions(NamedTuple):
    """The thoroughness of a diagnosis."""

    max_silence: float = MAX_SILENCE
    """Seconds that a step may be silent."""
    check_store: bool = True
    """Check the store itself when a step takes long."""
    delegate_depth: int = 2
    """Generations of delegates to check."""


DEFAULT_OPTIONS = DiagnosisOptions()


async def diagnose_workflow(
    workflow: ConversationWorkflow,
    description: WorkflowDescription,
    options: DiagnosisOptions = DEFAULT_OPTIONS,
) -> Trouble | None:
    """Find what most severely blocks a workflow; None if it progresses. Raises Unreachable."""
    if not is_running(description):
        return await _diagnose_end(workflow, description)
    if description.workflow_execution_info.status == WORKFLOW_PAUSED:
        return workflow_paused(workflow.workflow_id)
    if (trouble := await _diagnose_task(workflow, description)) is not None:
        return trouble
    steps = list(description.pending_activities)
    for step in steps:
        if (trouble := await _diagnose_step(workflow, description, step)) is not None:
            return trouble
    is_long = any(
        step.state == STEP_STARTED and seconds_since(step.last_started_time) > MAX_PICKUP_DELAY
        for step in steps
    )
    if (
        is_long
        and options.check_store
        and (trouble := await diagnose_store(workflow.log)) is not None
    ):
        return trouble
    for step in steps:
        if (trouble := await _diagnose_silence(workflow, step, options.max_silence)) is not None:
            return trouble
    return await _diagnose_delegates(workflow, description, options)


async def diagnose_store(log: EventLog) -> Trouble | None:
    """Find why the store of a log is unusable; None if it can be used."""
    try:
        async with asyncio.timeout(QUERY_TIMEOUT.total_seconds()):
            await load_trouble(log, 0)  # one small object, however long the log is
    except TimeoutError:
        return store_unavailable(f"The store does not answer within {QUERY_TIMEOUT.seconds} s")
    except StoreError as error:
        return store_unavailable(str(error))
    return None


async def _diagnose_end(
    workflow: ConversationWorkflow, description: WorkflowDescription
) -> Trouble:
    if description.workflow_execution_info.status != WORKFLOW_FAILED:
        return workflow_ended()
    failed = await load_workflow_failure(workflow, description)
    return workflow_failed(failed) if failed else workflow_ended()


async def _diagnose_task(
    workflow: ConversationWorkflow, description: WorkflowDescription
) -> Trouble | None:
    if not description.HasField("pending_workflow_task"):
        return None
    task = description.pending_workflow_task
    if task.attempt > 1 and (failed := await load_task_failure(workflow, description)) is not None:
        return workflow_task_failed(failed, task.attempt - 1)
    if task.attempt > 2:
        return workflow_task_lost(task.attempt - 1)
    waited = seconds_since(task.original_scheduled_time)
    is_waiting = task.state == TASK_SCHEDULED and waited > MAX_PICKUP_DELAY
    return no_worker(workflow.task_queue, waited) if is_waiting else None


async def _diagnose_step(
    workflow: ConversationWorkflow, description: WorkflowDescription, step: PendingActivityInfo
) -> Trouble | None:
    """Find why a step keeps failing, or that no worker has picked it up."""
    if step.paused:
        return step_paused(step.activity_type.name)
    waited = seconds_since(step.scheduled_time)
    if step.state == STEP_SCHEDULED and waited > MAX_PICKUP_DELAY:
        # A step with its own timeout for this is then scheduled on another queue.
        gives_up = step.activity_options.schedule_to_start_timeout.ToMilliseconds() > 0
        return None if gives_up else no_worker(step.activity_options.task_queue.name, waited)
    if step.attempt < 2 or not step.HasField("last_failure"):
        return None
    delay = -seconds_since(step.next_attempt_schedule_time) if step.state == STEP_SCHEDULED else 0.0
    if (
        step.attempt == 2
        and delay < RETRY_GRACE
        and seconds_since(step.last_attempt_complete_time) < RETRY_GRACE
    ):
        return None
    return step_failed(step, await load_step_failure(workflow, description, step))


async def _diagnose_silence(
    workflow: ConversationWorkflow, step: PendingActivityInfo, max_silence: float
) -> Trouble | None:
    """Find out whether a step has been silent for too long."""
    if step.state != STEP_STARTED or seconds_since(step.last_started_time) < max_silence:
        return None
    heartbeat = await load_heartbeat(workflow, step)
    last_output = heartbeat.get("told")
    seconds = (
        _seconds_since_iso(last_output) if last_output else seconds_since(step.last_started_time)
    )
    if seconds < max_silence or (heartbeat.get("text") and not last_output):
        return None
    status = await workflow.query_status() if step.activity_type.name == "tool.call" else None
    return step_silent(
        step, seconds, ", ".join(call.tool_name for call in status.pending) if status else ""
    )


async def _diagnose_delegates(
    workflow: ConversationWorkflow, description: WorkflowDescription, options: DiagnosisOptions
) -> Trouble | None:
    if not options.delegate_depth:
        return None
    options = options._replace(delegate_depth=options.delegate_depth - 1)
    return await diagnose_children(workflow, description, options, delegate_trouble)


async def diagnose_children(
    workflow: ConversationWorkflow,
    description: WorkflowDescription,
    options: DiagnosisOptions,
    describe: Callable[[str, Trouble], Trouble],
) -> Trouble | None:
    """Find what blocks one of the first conversations that a workflow waits for.

    `workflow` is that of any conversation; `describe` adds the conversation's id to its trouble.
    """
    names = [conversation_id_of(child.workflow_id) for child in description.pending_children]
    for name in list(filter(is_conversation_id, names))[:MAX_CHILDREN_CHECKED]:
        child = replace(workflow, log=EventLog(workflow.log.store, workflow.log.user_id, name))
        if (child_description := await child.describe()) is None:
            continue
        trouble = await diagnose_workflow(child, child_description, options)
        if trouble is not None and not trouble.is_over:
            return describe(name, trouble)
    return None


def _seconds_since_iso(moment: str) -> float:
    """Count the seconds since a timestamp in the format of our events."""
    return (datetime.now(UTC) - datetime.fromisoformat(f"{moment}+00:00")).total_seconds()
