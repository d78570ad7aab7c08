"""Failures of workflow tasks, steps and workflows, as Temporal records them."""

from collections.abc import Sequence
from enum import Enum
from typing import Any, Literal, NamedTuple

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.enums.v1 import WorkflowTaskFailedCause as Cause
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import Client
from temporalio.exceptions import ApplicationError

from perdure.agent.loop.phase import FAULT_MARK
from perdure.client.description import RPC_TIMEOUT, Description
from perdure.errors import ClientError
from perdure.temporal.connect import translate_rpc_errors

MAX_HISTORY_EVENTS = 50
"""The number of events to search in a history, the newest first."""

MAX_REASON_CHARS = 500
"""The length at which a reason is truncated."""

DECODE_FAILURE_PREFIX = "Failed decoding"
"""The start of the SDK's message for an undecodable payload; its cause is the reason."""

WORKFLOW_FAILED = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_FAILED


class TaskFailureKind(Enum):
    """The kind of a failed workflow task; the value says what to do about it."""

    BROKEN = (
        "Its workflow task failed {times}: {reason} It goes on when a worker with a mended version "
        "runs."
    )
    NONDETERMINISTIC = (
        "The code of its workers does not fit its history (tried {times}): {reason} It goes on "
        "when a worker runs the version that it began with, or one that can replay it; else its "
        "workflow is replaced by one that is opened from the log, after a minute, or at once by "
        "`perdure reopen`."
    )
    TOO_LARGE = (
        "What its workflow hands to Temporal is too large (tried {times}): {reason} Terminate the "
        "workflow in Temporal; `perdure resume` then opens the conversation from its log."
    )


class FailureReason(NamedTuple):
    """The reason for a failure; `type` is the error's type, `since` a time of day."""

    message: str
    type: str = ""
    since: str = ""
    worker: str = ""
    kind: TaskFailureKind = TaskFailureKind.BROKEN


class DecodedError(NamedTuple):
    """The error behind a failure; `details` are what was said of it beside its message."""

    message: str
    type: str = ""
    details: Sequence[Any] = ()


def _causes(*names: str) -> frozenset[Cause.ValueType]:
    return frozenset(Cause.Value(f"WORKFLOW_TASK_FAILED_CAUSE_{name}") for name in names)


_HARMLESS = _causes(
    "UNHANDLED_COMMAND", "FORCE_CLOSE_COMMAND", "RESET_STICKY_TASK_QUEUE", "RESET_WORKFLOW"
)

_TOO_LARGE = _causes("GRPC_MESSAGE_TOO_LARGE", "PAYLOADS_TOO_LARGE", "REQUEST_TOO_LARGE")

_KINDS = {
    **dict.fromkeys(_TOO_LARGE, TaskFailureKind.TOO_LARGE),
    **dict.fromkeys(_causes("NON_DETERMINISTIC_ERROR"), TaskFailureKind.NONDETERMINISTIC),
}


async def load_task_failure(
    temporal: Client, description: Description
) -> FailureReason | Literal["completed"] | None:
    """Load why the described workflow task fails; "completed" if it has succeeded since then.

    Raises Unreachable.
    """
    described = description.workflow_execution_info.history_length
    for event in await _load_newest_events(temporal, description):
        if event.HasField("workflow_task_completed_event_attributes"):
            return "completed" if event.event_id > described else None
        failed = event.workflow_task_failed_event_attributes
        is_failure = event.HasField("workflow_task_failed_event_attributes")
        if is_failure and failed.cause not in _HARMLESS:
            reason, error_type = await decode_reason(temporal, failed.failure)
            if error_type and error_type != "_NonDeterminismError":
                reason = f"{error_type}: {reason}"
            return FailureReason(reason, kind=_KINDS.get(failed.cause, TaskFailureKind.BROKEN))
    return None


async def load_step_failure(
    temporal: Client, description: Description, step: PendingActivityInfo
) -> FailureReason:
    """Load why the last attempt of a step failed, and when the step was scheduled.

    Raises Unreachable.
    """
    error = await decode_error(temporal, step.last_failure)
    since = (
        format_time(event.event_time)
        for event in await _load_newest_events(temporal, description)
        if event.activity_task_scheduled_event_attributes.activity_id == step.activity_id
    )
    since_then = next(since, "long ago")
    return FailureReason(_tell(error), error.type, since_then, step.last_worker_identity)


def _tell(error: DecodedError) -> str:
    """Return the reason for a client: of a fault of ours its kind and its id alone."""
    match tuple(error.details):
        case (str() as mark, str() as fault_id) if mark == FAULT_MARK:
            return f"{error.type}, see {fault_id} in the worker's log"
    return error.message


async def load_workflow_failure(temporal: Client, description: Description) -> FailureReason | None:
    """Load why a closed workflow has failed; None if it has not. Raises Unreachable."""
    if description.workflow_execution_info.status != WORKFLOW_FAILED:
        return None
    for event in await _load_newest_events(temporal, description, 1):  # all of one transaction
        failed = event.workflow_execution_failed_event_attributes
        if event.HasField("workflow_execution_failed_event_attributes"):
            return FailureReason(*await decode_reason(temporal, failed.failure))
    return None


async def load_heartbeat(temporal: Client, step: PendingActivityInfo) -> dict[str, Any]:
    """Load the last heartbeat of this attempt; Temporal may still hold the previous one's."""
    if step.last_heartbeat_time.ToDatetime() <= step.last_started_time.ToDatetime():
        return {}
    try:
        details = await temporal.data_converter.decode(step.heartbeat_details.payloads)
    except ClientError:  # encrypted, and no key is here
        return {}
    return details[0] if details and isinstance(details[0], dict) else {}


async def _load_newest_events(
    temporal: Client, description: Description, count: int = MAX_HISTORY_EVENTS
) -> list[HistoryEvent]:
    request = GetWorkflowExecutionHistoryReverseRequest(
        namespace=temporal.namespace,
        execution=description.workflow_execution_info.execution,
        maximum_page_size=count,
    )
    service = temporal.workflow_service
    with translate_rpc_errors("does not show its history"):
        answer = await service.get_workflow_execution_history_reverse(request, timeout=RPC_TIMEOUT)
    return list(answer.history.events)


async def decode_reason(temporal: Client, failure: Failure) -> tuple[str, str]:
    """Decode the reason and its type, skipping wrappers by the server and the SDK."""
    error = await decode_error(temporal, failure)
    return error.message, error.type


async def decode_error(temporal: Client, failure: Failure) -> DecodedError:
    """Decode the error behind a failure, skipping wrappers by the server and the SDK."""
    try:
        error = await temporal.data_converter.decode_failure(failure)
    except ClientError as unreadable:
        return DecodedError(str(unreadable)[:MAX_REASON_CHARS], type(unreadable).__name__)
    while _is_wrapper(failure, error) and error.__cause__ is not None:
        error, failure = error.__cause__, failure.cause
    message = str(getattr(error, "message", "") or error).strip()
    sentence = " ".join(message.split())[:MAX_REASON_CHARS]
    if not isinstance(error, ApplicationError):
        return DecodedError(sentence)
    return DecodedError(sentence, error.type or "", error.details)


def _is_wrapper(failure: Failure, error: BaseException) -> bool:
    """Tell whether the real reason is the cause: the server or the SDK has wrapped it."""
    if isinstance(error, ApplicationError) and error.message.startswith(DECODE_FAILURE_PREFIX):
        return True
    return failure.HasField("server_failure_info")


def format_time(moment: Timestamp) -> str:
    return f"{moment.ToDatetime():%H:%M:%S} UTC"
