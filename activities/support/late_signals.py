"""Signals that a workflow had not seen when it decided on a step."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import TypeAlias

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

Search: TypeAlias = Callable[[], Awaitable[bool]]
"""Waits for the end of a search, and returns what it found."""


@contextlib.contextmanager
def search_late_signals(seen_events: int | None) -> Iterator[Search]:
    """Search for late signals while the body prepares its request; see `has_late_signals`.

    There are none if `seen_events` is None.
    """
    if seen_events is None:
        yield _find_nothing
        return
    search = asyncio.ensure_future(has_late_signals(seen_events))

    async def wait() -> bool:
        return await search

    try:
        yield wait
    finally:
        search.cancel()


async def _find_nothing() -> bool:
    return False


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
        late = [event for event in page.history.events if event.event_id > seen_events]
        if any(event.event_type in SIGNALS for event in late):
            return True
        is_last = any(event.event_id <= seen_events + 1 for event in page.history.events)
        if is_last or not page.next_page_token:
            return False
        request.next_page_token = page.next_page_token
