"""The diagnosis of a conversation that does not progress, from Temporal and the store."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from itertools import islice
from typing import NamedTuple

from temporalio.api.enums import v1 as enums
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client

from perdure.agent.loop.model_queues import llm_queue_name, tools_queue_name
from perdure.client.description import Description, is_running
from perdure.client.diagnosis import failures
from perdure.client.diagnosis import trouble as troubles
from perdure.client.diagnosis.trouble import STEP_SCHEDULED, seconds_since
from perdure.client.trouble import Trouble
from perdure.client.workflow import QUERY_TIMEOUT, ConversationWorkflow
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

WORKFLOW_PAUSED = enums.WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_PAUSED
STEP_STARTED = enums.PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
TASK_SCHEDULED = enums.PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_SCHEDULED


class DiagnosisOptions(NamedTuple):
    """The thoroughness of a diagnosis."""

    max_silence: float = MAX_SILENCE
    """Seconds that a step may be silent."""
    check_store: bool = True
    """Check the store itself when a step takes long."""
    depth: int = 2
    """Generations of delegates, or of a batch's conversations, to check."""
    describe_child: Callable[[str, Trouble], Trouble] = troubles.delegate_trouble
    """Adds the id of a child conversation to its trouble."""


DEFAULT_OPTIONS = DiagnosisOptions()


async def diagnose_workflow(
    workflow: ConversationWorkflow, options: DiagnosisOptions = DEFAULT_OPTIONS
) -> Trouble | None:
    """Find what most severely blocks a workflow; None if it progresses or does not exist.

    Raises Unreachable.
    """
    description = await workflow.describe()
    if description is None:
        return None
    if not is_running(description):
        return troubles.workflow_closed(
            await failures.load_workflow_failure(workflow.temporal, description)
        )
    if description.workflow_execution_info.status == WORKFLOW_PAUSED:
        return troubles.workflow_paused(workflow.workflow_id)
    temporal, steps = workflow.temporal, description.pending_activities
    started = (step.last_started_time for step in steps if step.state == STEP_STARTED)
    is_long = any(seconds_since(moment) > MAX_PICKUP_DELAY for moment in started)
    return (
        await _diagnose_task(temporal, description)
        or await _find_first(_diagnose_step(temporal, description, step) for step in steps)
        or (await diagnose_store(workflow.log) if is_long and options.check_store else None)
        or await _find_first(_diagnose_silence(workflow, step, options) for step in steps)
        or await _diagnose_children(workflow, description, options)
    )


async def _find_first(checks: Iterable[Awaitable[Trouble | None]]) -> Trouble | None:
    for check in checks:
        if (trouble := await check) is not None:
            return trouble
    return None


async def diagnose_store(log: EventLog) -> Trouble | None:
    """Find why the store of a log is unusable; None if it can be used."""
    try:
        async with asyncio.timeout(QUERY_TIMEOUT.total_seconds()):
            await load_trouble(log, 0)  # one small object, however long the log is
    except TimeoutError:
        reason = f"The store does not answer within {QUERY_TIMEOUT.seconds} s"
        return troubles.store_unavailable(reason)
    except StoreError as error:
        return troubles.store_unavailable(str(error))
    return None


async def _diagnose_task(temporal: Client, description: Description) -> Trouble | None:
    if not description.HasField("pending_workflow_task"):
        return None
    task = description.pending_workflow_task
    config = description.execution_config
    failed = await failures.load_task_failure(temporal, description) if task.attempt > 1 else None
    if failed == "completed":
        return None
    if failed is not None:
        return troubles.workflow_task_failed(failed, task.attempt - 1)
    if task.attempt > 2:
        limit = config.default_workflow_task_timeout.ToTimedelta()
        return troubles.workflow_task_lost(task.attempt - 1, limit)
    queue = config.task_queue.name
    waited = seconds_since(task.original_scheduled_time)
    is_waiting = task.state == TASK_SCHEDULED and waited > MAX_PICKUP_DELAY
    return troubles.no_worker(queue, waited) if is_waiting else None


async def _diagnose_step(
    temporal: Client, description: Description, step: PendingActivityInfo
) -> Trouble | None:
    """Find why a step keeps failing, or that no worker has picked it up."""
    if step.paused:
        return troubles.step_paused(step.activity_type.name)
    waited = seconds_since(step.scheduled_time)
    if step.state == STEP_SCHEDULED and waited > MAX_PICKUP_DELAY:
        queue = step.activity_options.task_queue.name
        common = description.execution_config.task_queue.name
        if queue in (kinds := {llm_queue_name(common): "model", tools_queue_name(common): "tools"}):
            return troubles.no_worker(queue, waited, f" --only {kinds[queue]}")
        # A step with its own timeout for this is then scheduled on another queue.
        gives_up = step.activity_options.schedule_to_start_timeout.ToMilliseconds() > 0
        return None if gives_up else troubles.no_worker(queue, waited)
    if step.attempt < 2 or not step.HasField("last_failure"):
        return None
    delay = -seconds_since(step.next_attempt_schedule_time) if step.state == STEP_SCHEDULED else 0.0
    since_failure = seconds_since(step.last_attempt_complete_time)
    if step.attempt == 2 and max(delay, since_failure) < RETRY_GRACE:
        return None
    return troubles.step_failed(step, await failures.load_step_failure(temporal, description, step))


async def _diagnose_silence(
    workflow: ConversationWorkflow, step: PendingActivityInfo, options: DiagnosisOptions
) -> Trouble | None:
    """Find out whether a step has been silent for too long."""
    seconds = seconds_since(step.last_started_time)
    is_preparing = step.activity_type.name == "agent.prepare"
    if step.state != STEP_STARTED or (seconds < options.max_silence and not is_preparing):
        return None
    heartbeat = await failures.load_heartbeat(workflow.temporal, step)
    if is_preparing and (servers := heartbeat.get("text")):
        return troubles.servers_starting(str(servers), seconds)
    if last_output := heartbeat.get("changed_at"):
        moment = datetime.fromisoformat(f"{last_output}+00:00")
        seconds = (datetime.now(UTC) - moment).total_seconds()
    if seconds < options.max_silence or (heartbeat.get("text") and not last_output):
        return None
    status = await workflow.query_status() if step.activity_type.name == "tool.call" else None
    calls = ", ".join(call.tool_name for call in status.pending) if status else ""
    return troubles.step_silent(step, seconds, calls)


async def _diagnose_children(
    workflow: ConversationWorkflow, description: Description, options: DiagnosisOptions
) -> Trouble | None:
    """Find what blocks one of the first conversations that a workflow waits for."""
    if not options.depth:
        return None
    ids = (child.workflow_id for child in description.pending_children)
    conversations = (id for id in ids if is_conversation_id(conversation_id_of(id)))
    deeper = DiagnosisOptions(options.max_silence, options.check_store, options.depth - 1)
    for workflow_id in islice(conversations, MAX_CHILDREN_CHECKED):
        trouble = await diagnose_workflow(workflow.child(workflow_id), deeper)
        if trouble is not None and not trouble.is_over:
            return options.describe_child(conversation_id_of(workflow_id), trouble)
    return None
