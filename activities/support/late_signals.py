"""Signals that a workflow had not seen when it decided on a step."""

from datetime import timedelta

from temporalio import activity
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.service import RPCError

SIGNALS = (
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED,
)

NEWEST_EVENTS = 20
"""Events that are looked at: those of one workflow task, and of what came meanwhile."""

RPC_TIMEOUT = timedelta(seconds=2)


async def has_late_signals(seen_events: int) -> bool:
    """Tell whether a signal came after the workflow had seen so many events of its history.

    False if Temporal does not answer: the step goes on.
    """
    info = activity.info()
    request = GetWorkflowExecutionHistoryReverseRequest(
        namespace=info.workflow_namespace or "",
        execution=WorkflowExecution(
            workflow_id=info.workflow_id or "", run_id=info.workflow_run_id or ""
        ),
        maximum_page_size=NEWEST_EVENTS,
    )
    service = activity.client().workflow_service
    try:
        answer = await service.get_workflow_execution_history_reverse(request, timeout=RPC_TIMEOUT)
    except RPCError as error:
        activity.logger.warning("signals are not looked for: %s", error)
        return False
    return any(
        event.event_id > seen_events and event.event_type in SIGNALS
        for event in answer.history.events
    )
