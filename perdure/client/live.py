"""The running steps of a conversation, with their output as it is streamed."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from pydantic import TypeAdapter, ValidationError
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client

from perdure.agent.loop.model_queues import REROUTED_SUFFIX
from perdure.client.diagnosis.failures import DecodedError, decode_error, load_heartbeat
from perdure.client.diagnosis.trouble import STEP_SCHEDULED
from perdure.client.running_step import STEP_POLL_INTERVAL, RunningStep
from perdure.client.workflow import ConversationWorkflow
from perdure.errors import Unreachable
from perdure.events.base import TIMESTAMP_FORMAT
from perdure.events.status import Loading, ModelRetry

_LOADING: TypeAdapter[tuple[Loading, ...]] = TypeAdapter(tuple[Loading, ...])

MAX_STEP_POLL_INTERVAL = 1.0
"""The longest pause, in seconds, between two polls while no step is running."""


async def watch_running_steps(
    workflow: ConversationWorkflow,
) -> AsyncIterator[tuple[RunningStep, ...]]:
    """Yield all running steps whenever they change, forever.

    No step counts as running while Temporal is unreachable.
    """
    previous: tuple[RunningStep, ...] = ()
    pause = STEP_POLL_INTERVAL
    while True:
        try:
            current = await list_running_steps(workflow)
        except Unreachable:
            current = ()
        if current != previous:
            yield current
        previous = current
        pause = STEP_POLL_INTERVAL if current else min(2 * pause, MAX_STEP_POLL_INTERVAL)
        await asyncio.sleep(pause)


async def list_running_steps(workflow: ConversationWorkflow) -> tuple[RunningStep, ...]:
    """List all running steps. Raises Unreachable."""
    description = await workflow.describe()
    if description is None:
        return ()
    run_id = description.workflow_execution_info.execution.run_id
    steps = description.pending_activities
    return tuple([await _load_step(workflow.temporal, run_id, step) for step in steps])


async def _load_step(temporal: Client, run_id: str, step: PendingActivityInfo) -> RunningStep:
    heartbeat = {} if step.state == STEP_SCHEDULED else await load_heartbeat(temporal, step)
    failed = await decode_error(temporal, step.last_failure) if step.last_failure.message else None
    return RunningStep(
        kind=step.activity_type.name,
        activity_id=step.activity_id.rstrip(REROUTED_SUFFIX),
        attempt=step.attempt,
        text=str(heartbeat.get("text", "")),
        run_id=run_id,
        failure=failed.message if failed else None,
        offset=offset if isinstance(offset := heartbeat.get("offset"), int) else None,
        loading=_parse_loading(heartbeat.get("loading")),
        retry=_describe_retry(step, failed) if failed else None,
    )


def _parse_loading(reported: Any) -> tuple[Loading, ...]:
    """Parse what a step says that it loads; nothing of what a newer worker may say otherwise."""
    with contextlib.suppress(ValidationError):
        return _LOADING.validate_python(reported or ())
    return ()


def _describe_retry(step: PendingActivityInfo, failed: DecodedError) -> ModelRetry | None:
    if not step.activity_type.name.startswith("llm.") or step.attempt < 2:
        return None
    code, model = (*map(str, failed.details[:2]), "", "")[:2]
    waits = step.state == STEP_SCHEDULED and step.HasField("next_attempt_schedule_time")
    moment = step.next_attempt_schedule_time.ToDatetime() if waits else None
    return ModelRetry(
        model=model or None,
        kind=code or failed.type or "unknown",
        attempt=step.attempt,
        next_at=moment.strftime(TIMESTAMP_FORMAT) if moment else None,
    )
