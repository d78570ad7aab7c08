"""Silent workers and nondeterminism errors in Temporal's histories."""

from temporalio.api.enums.v1 import EventType, TimeoutType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client

from perdure.temporal.names import conversation_workflow_id
from reliability.batch_chaos.model import RequestId
from reliability.batch_chaos.plan import USER

STARTED = EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED
SCHEDULED = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED

FAILED = EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED

NON_DETERMINISTIC = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR

TIMEOUT_TYPES = (TimeoutType.TIMEOUT_TYPE_HEARTBEAT, TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE)


async def was_silent(temporal: Client, conversation_id: str, request: RequestId) -> bool:
    """Check whether the history has a heartbeat time-out of the step with this request.

    That befalls a worker on a machine that has too much to do, as if it had been frozen.
    """
    kind = "sample.finish" if request.purpose == "grade" else "llm.chat"
    handle = temporal.get_workflow_handle(conversation_workflow_id(USER, conversation_id))
    events = [event async for event in handle.fetch_history_events()]
    steps = {event.event_id for event in events if _kind(event) == kind}
    return any(
        event.activity_task_started_event_attributes.scheduled_event_id in steps
        and _is_overdue(event)
        for event in events
        if event.event_type == STARTED
    )


async def find_nondeterminism(temporal: Client, workflow_id: str) -> list[str]:
    """Workflow tasks that failed because a replay did not come to what was done before."""
    events = [
        event async for event in temporal.get_workflow_handle(workflow_id).fetch_history_events()
    ]
    failed = (
        event.workflow_task_failed_event_attributes
        for event in events
        if event.event_type == FAILED
    )
    return [
        f"{workflow_id}: {item.failure.message}"
        for item in failed
        if item.cause == NON_DETERMINISTIC
    ]


def _kind(event: HistoryEvent) -> str | None:
    if event.event_type != SCHEDULED:
        return None
    return event.activity_task_scheduled_event_attributes.activity_type.name


def _is_overdue(event: HistoryEvent) -> bool:
    failure = event.activity_task_started_event_attributes.last_failure
    return failure.timeout_failure_info.timeout_type in TIMEOUT_TYPES
