"""Signals that a workflow had not seen when it decided on a step."""

import asyncio
import contextlib
from collections.abc import Awaitable, Iterator
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

RPC_TIMEOUT = timedelta(seconds=2)


@contextlib.contextmanager
def search_late_signals(seen_events: int | None) -> Iterator[Awaitable[bool]]:
    """Search for late signals while the body prepares its request; see `has_late_signals`.

    What it yields may be awaited several times. There are none if `seen_events` is None.
    """
    search: asyncio.Future[bool]
    if seen_events is None:
        search = asyncio.get_running_loop().create_future()
        search.set_result(False)
    else:
        search = asyncio.ensure_future(has_late_signals(seen_events))
    try:
        yield search
    finally:
        search.cancel()


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
        # A page has the events that were written together: usually those of the workflow task.
        maximum_page_size=1,
    )
    service = activity.client().workflow_service
    while True:
        try:
            page = await service.get_workflow_execution_history_reverse(
                request, timeout=RPC_TIMEOUT
            )
        except RPCError as error:
            activity.logger.warning("signals are not looked for: %s", error)
            return False
        events = page.history.events
        if any(each.event_id > seen_events and each.event_type in SIGNALS for each in events):
            return True
        if not page.next_page_token or any(each.event_id <= seen_events + 1 for each in events):
            return False
        request.next_page_token = page.next_page_token
