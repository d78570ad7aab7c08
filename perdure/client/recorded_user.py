"""The user of a workflow, as Temporal recorded it."""

from typing import Any

from temporalio.client import Client

from perdure.client.description import RPC_TIMEOUT, Description
from perdure.temporal.connect import translate_rpc_errors
from perdure.temporal.names import owner_of
from perdure.temporal.search_attributes import USER


async def load_recorded_user(temporal: Client, description: Description) -> str | None:
    """Load the user of a workflow, from its id, its search attributes or its input.

    Returns None where none of them names a user. Raises Unreachable.
    """
    info = description.workflow_execution_info
    if (owner := owner_of(info.execution.workflow_id)) is not None:
        return owner
    if (attribute := info.search_attributes.indexed_fields.get(USER.name)) is not None:
        [user_id] = temporal.data_converter.payload_converter.from_payloads([attribute], [str])
        return str(user_id)
    start = await _load_input(temporal, info.execution.workflow_id, info.execution.run_id)
    return str(start["user_id"]) if isinstance(start, dict) and "user_id" in start else None


async def _load_input(temporal: Client, workflow_id: str, run_id: str) -> Any:
    """Load the first argument of a workflow from its history. Raises Unreachable."""
    handle = temporal.get_workflow_handle(workflow_id, run_id=run_id)
    events = handle.fetch_history_events(page_size=1, rpc_timeout=RPC_TIMEOUT)
    with translate_rpc_errors("does not show its history"):
        started = (await anext(events)).workflow_execution_started_event_attributes
    arguments = await temporal.data_converter.decode(started.input.payloads)
    return arguments[0] if arguments else None
