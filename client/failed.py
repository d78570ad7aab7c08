"""What Temporal knows of things that failed: a workflow's task, a step, the workflow itself."""

from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple

from temporalio.api.enums.v1 import WorkflowTaskFailedCause
from temporalio.api.failure.v1 import Failure as Told
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import (
    DescribeWorkflowExecutionResponse,
    GetWorkflowExecutionHistoryReverseRequest,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from client.errors import ClientError, Unreachable
from client.remote import LIMIT, Remote

RECENT = 50
"""Events of a history that are looked through, the newest first."""

LONGEST = 500
"""Characters of a reason that are told."""


UNDECODED = "Failed decoding"
"""How the SDK begins what it says where a payload cannot be decrypted; why stands behind it."""


class Spell(Enum):
    """What kind of failure of a workflow task it is, by what mends it."""

    BROKEN = "a mended version of the code"
    MISFIT = "the version of the code that fits the history"
    TOO_LARGE = "handing over less"


class Failure(NamedTuple):
    """`told` is its reason, `type` what an activity calls it; `since` is a moment in UTC."""

    told: str
    type: str = ""
    since: str = ""
    worker: str = ""
    spell: Spell = Spell.BROKEN


_PREFIX = "WORKFLOW_TASK_FAILED_CAUSE_"

_HARMLESS = frozenset(
    WorkflowTaskFailedCause.Value(f"{_PREFIX}{name}")
    for name in (
        "UNHANDLED_COMMAND",
        "FORCE_CLOSE_COMMAND",
        "RESET_STICKY_TASK_QUEUE",
        "RESET_WORKFLOW",
    )
)

_SPELLS = {
    WorkflowTaskFailedCause.Value(f"{_PREFIX}{name}"): spell
    for name, spell in {
        "NON_DETERMINISTIC_ERROR": Spell.MISFIT,
        "GRPC_MESSAGE_TOO_LARGE": Spell.TOO_LARGE,
        "PAYLOADS_TOO_LARGE": Spell.TOO_LARGE,
        "REQUEST_TOO_LARGE": Spell.TOO_LARGE,
    }.items()
}


async def failed_task(remote: Remote, told: DescribeWorkflowExecutionResponse) -> Failure | None:
    """Why the workflow's task fails now. Raises Unreachable."""
    for event in await _newest(remote, told):
        if event.HasField("workflow_task_completed_event_attributes"):
            return None
        failed = event.workflow_task_failed_event_attributes
        if (
            event.HasField("workflow_task_failed_event_attributes")
            and failed.cause not in _HARMLESS
        ):
            why, kind = await reason_of(remote, failed.failure)
            spell = _SPELLS.get(failed.cause, Spell.BROKEN)
            if kind and kind != "_NonDeterminismError":
                why = f"{kind}: {why}"
            return Failure(why, since=_moment(event), worker=failed.identity, spell=spell)
    return None


async def failure_of(
    remote: Remote, told: DescribeWorkflowExecutionResponse, step: PendingActivityInfo
) -> Failure:
    """Why the last attempt of a step came to nothing, and when the first began.

    Raises Unreachable.
    """
    why, kind = await reason_of(remote, step.last_failure)
    since = (
        _moment(event)
        for event in await _newest(remote, told)
        if event.activity_task_scheduled_event_attributes.activity_id == step.activity_id
    )
    return Failure(why, kind, next(since, "long ago"), step.last_worker_identity)


async def failed_workflow(
    remote: Remote, told: DescribeWorkflowExecutionResponse
) -> Failure | None:
    """Why the workflow has ended in a failure. Raises Unreachable."""
    for event in await _newest(remote, told, 1):
        failed = event.workflow_execution_failed_event_attributes
        if event.HasField("workflow_execution_failed_event_attributes"):
            return Failure(*await reason_of(remote, failed.failure), since=_moment(event))
    return None


async def news_of(remote: Remote, step: PendingActivityInfo) -> dict[str, Any]:
    """What this attempt last told: Temporal keeps the news of the one before it until then."""
    if step.last_heartbeat_time.ToDatetime() <= step.last_started_time.ToDatetime():
        return {}
    try:
        news = await remote.temporal.data_converter.decode(step.heartbeat_details.payloads)
    except ClientError:  # encrypted, and no key is here
        return {}
    return news[0] if news and isinstance(news[0], dict) else {}


async def _newest(
    remote: Remote, told: DescribeWorkflowExecutionResponse, count: int = RECENT
) -> list[HistoryEvent]:
    request = GetWorkflowExecutionHistoryReverseRequest(
        namespace=remote.temporal.namespace,
        execution=told.workflow_execution_info.execution,
        maximum_page_size=count,
    )
    service = remote.temporal.workflow_service
    try:
        answer = await service.get_workflow_execution_history_reverse(request, timeout=LIMIT)
    except RPCError as error:
        raise Unreachable(f"Temporal does not show its history: {error.message}") from error
    return list(answer.history.events)


async def reason_of(remote: Remote, failure: Told) -> tuple[str, str]:
    """The reason, and its type: a long reason is put behind one of the server's."""
    try:
        error = await remote.temporal.data_converter.decode_failure(failure)
    except ClientError as unreadable:
        return str(unreadable)[:LONGEST], type(unreadable).__name__
    while _is_behind(failure, error) and error.__cause__ is not None:
        error, failure = error.__cause__, failure.cause
    message = str(getattr(error, "message", "") or error).strip()
    kind = error.type or "" if isinstance(error, ApplicationError) else ""
    return " ".join(message.split())[:LONGEST], kind


def _is_behind(failure: Told, error: BaseException) -> bool:
    """Whether the reason stands behind this: the server's own words, or the SDK's for a codec's."""
    undecoded = isinstance(error, ApplicationError) and error.message.startswith(UNDECODED)
    return failure.HasField("server_failure_info") or undecoded


def _moment(event: HistoryEvent) -> str:
    moment: datetime = event.event_time.ToDatetime()
    return f"{moment:%H:%M:%S} UTC"
