"""Asking Temporal, and the store, why a conversation does not go on at this moment."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from temporalio.api.enums.v1 import (
    PendingActivityState,
    PendingWorkflowTaskState,
    WorkflowExecutionStatus,
)
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse

from client.failed import failed_task, failed_workflow, failure_of, news_of
from client.remote import ANSWER, Remote, is_alive
from client.trouble import (
    WAITS,
    Trouble,
    age,
    ended,
    of_delegate,
    paused,
    silent,
    step_failed,
    step_paused,
    store_away,
    task_failed,
    task_lost,
    untaken,
    workflow_failed,
)
from storage.errors import StoreError
from storage.keys import is_conversation_id
from storage.log import EventLog
from storage.trouble import kept_trouble

UNTAKEN = 10.0
"""Seconds that work may wait for a worker before that is told."""

QUIET = 45.0
"""Seconds that a step may be silent before that is told."""

SOON = 2.0
"""Seconds after a failure within which a second try may still mend it."""

CHILDREN = 3
"""How many delegates are looked at when all else is well."""

FAILED = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_FAILED
PAUSED = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_PAUSED
AT_WORK = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
TASK_WAITS = PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_SCHEDULED


class Care(NamedTuple):
    """How closely to look: `quiet` is how long a step may be silent, in seconds.

    `store` asks the store itself where a step takes long; `depth` counts generations of delegates.
    """

    quiet: float = QUIET
    store: bool = True
    depth: int = 2


USUAL = Care()


async def trouble_of(
    remote: Remote, told: DescribeWorkflowExecutionResponse, care: Care = USUAL
) -> Trouble | None:
    """The worst that keeps a workflow from going on; none where it does. Raises Unreachable."""
    if not is_alive(told):
        return await _of_end(remote, told)
    if told.workflow_execution_info.status == PAUSED:
        return paused(remote.workflow_id)
    if (trouble := await _of_task(remote, told)) is not None:
        return trouble
    steps = list(told.pending_activities)
    for step in steps:
        if (trouble := await _of_step(remote, told, step)) is not None:
            return trouble
    long = any(one.state == AT_WORK and age(one.last_started_time) > UNTAKEN for one in steps)
    if long and care.store and (trouble := await of_store(remote.log)) is not None:
        return trouble
    for step in steps:
        if (trouble := await _of_silence(remote, step, care.quiet)) is not None:
            return trouble
    return await _of_delegates(remote, told, care)


async def of_store(log: EventLog) -> Trouble | None:
    """Why the store of a log cannot be used now."""
    try:
        async with asyncio.timeout(ANSWER.total_seconds()):
            await kept_trouble(log, 0)  # one small object, however long the log is
    except TimeoutError:
        return store_away(f"The store does not answer within {ANSWER.seconds} s")
    except StoreError as error:
        return store_away(str(error))
    return None


async def _of_end(remote: Remote, told: DescribeWorkflowExecutionResponse) -> Trouble:
    if told.workflow_execution_info.status != FAILED:
        return ended()
    failed = await failed_workflow(remote, told)
    return workflow_failed(failed) if failed else ended()


async def _of_task(remote: Remote, told: DescribeWorkflowExecutionResponse) -> Trouble | None:
    if not told.HasField("pending_workflow_task"):
        return None
    task = told.pending_workflow_task
    if task.attempt > 1 and (failed := await failed_task(remote, told)) is not None:
        return task_failed(failed, task.attempt - 1)
    if task.attempt > 2:
        return task_lost(task.attempt - 1)
    waited = age(task.original_scheduled_time)
    waits = task.state == TASK_WAITS and waited > UNTAKEN
    return untaken(remote.task_queue, waited) if waits else None


async def _of_step(
    remote: Remote, told: DescribeWorkflowExecutionResponse, step: PendingActivityInfo
) -> Trouble | None:
    """Why a step came to nothing, again and again; or that nobody has begun it."""
    if step.paused:
        return step_paused(step.activity_type.name)
    waited = age(step.scheduled_time)
    if step.state == WAITS and waited > UNTAKEN:
        # One that gives up waiting by itself is then done elsewhere.
        gives_up = step.activity_options.schedule_to_start_timeout.ToMilliseconds() > 0
        return None if gives_up else untaken(step.activity_options.task_queue.name, waited)
    if step.attempt < 2 or not step.HasField("last_failure"):
        return None
    later = -age(step.next_attempt_schedule_time) if step.state == WAITS else 0.0
    if step.attempt == 2 and later < SOON and age(step.last_attempt_complete_time) < SOON:
        return None
    return step_failed(step, await failure_of(remote, told, step))


async def _of_silence(remote: Remote, step: PendingActivityInfo, quiet: float) -> Trouble | None:
    """That a step says nothing: what it said last may be long ago."""
    if step.state != AT_WORK or age(step.last_started_time) < quiet:
        return None
    news = await news_of(remote, step)
    heard = news.get("told")
    seconds = _since(heard) if heard else age(step.last_started_time)
    if seconds < quiet or (news.get("text") and not heard):
        return None
    found = await remote.asked() if step.activity_type.name == "tool.call" else None
    return silent(step, seconds, ", ".join(one.tool_name for one in found.pending) if found else "")


async def _of_delegates(
    remote: Remote, told: DescribeWorkflowExecutionResponse, care: Care
) -> Trouble | None:
    names = [child.workflow_id.removeprefix("conv-") for child in told.pending_children]
    for name in filter(is_conversation_id, names[: CHILDREN if care.depth else 0]):
        one = replace(remote, log=EventLog(remote.log.store, remote.log.user_id, name))
        found = await one.described()
        closer = care._replace(depth=care.depth - 1)
        trouble = await trouble_of(one, found, closer) if found else None
        if trouble is not None and not trouble.is_over:
            return of_delegate(name, trouble)
    return None


def _since(moment: str) -> float:
    """Seconds since a moment as our events write it."""
    return (datetime.now(UTC) - datetime.fromisoformat(f"{moment}+00:00")).total_seconds()
