"""The runs of a workflow, each of which continues the one before it as new."""

from collections.abc import AsyncIterator
from typing import Any

from temporalio.client import Client, WorkflowHandle, WorkflowHistoryEventFilterType


async def walk_runs(temporal: Client, workflow_id: str) -> AsyncIterator[WorkflowHandle[Any, Any]]:
    """Yield a handle of each run, from the first to the newest."""
    described = await temporal.get_workflow_handle(workflow_id).describe()
    run_id = described.raw_description.workflow_execution_info.first_run_id
    while run_id:
        handle = temporal.get_workflow_handle(workflow_id, run_id=run_id)
        yield handle
        run_id = await _find_next_run(handle)


async def _find_next_run(handle: WorkflowHandle[Any, Any]) -> str:
    """Return the id of the run that continues this one; "" for the newest."""
    newest = WorkflowHistoryEventFilterType.CLOSE_EVENT
    async for event in handle.fetch_history_events(event_filter_type=newest):
        return event.workflow_execution_continued_as_new_event_attributes.new_execution_run_id
    return ""
