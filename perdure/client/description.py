"""Descriptions of workflows by Temporal."""

from datetime import timedelta
from typing import TypeAlias

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowExecutionStatus as Status
from temporalio.api.workflowservice import v1 as requests
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from perdure.errors import Unreachable

RPC_TIMEOUT = timedelta(seconds=10)
"""The time within which the Temporal server must answer a request."""

RUNNING = (Status.WORKFLOW_EXECUTION_STATUS_RUNNING, Status.WORKFLOW_EXECUTION_STATUS_PAUSED)

Description: TypeAlias = requests.DescribeWorkflowExecutionResponse


async def describe_workflow(temporal: Client, workflow_id: str) -> Description | None:
    """Describe a workflow; None if Temporal does not know it.

    The raw request is sent because the SDK's `describe` fails on a workflow that an operator
    has paused in Temporal. Raises Unreachable.
    """
    request = requests.DescribeWorkflowExecutionRequest(
        namespace=temporal.namespace, execution=WorkflowExecution(workflow_id=workflow_id)
    )
    service = temporal.workflow_service
    try:
        return await service.describe_workflow_execution(request, timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        if error.status is RPCStatusCode.UNAVAILABLE:
            raise Unreachable("Temporal does not answer.") from error
        raise Unreachable(f"Temporal does not say where it stands: {error.message}") from error


def is_running(description: Description | None) -> bool:
    """Tell whether a described workflow runs or waits for a worker."""
    return description is not None and description.workflow_execution_info.status in RUNNING


def is_working(description: Description | None) -> bool:
    """Tell whether a described workflow has anything to do now, with or without a worker."""
    return (
        description is not None
        and is_running(description)
        and (bool(description.pending_activities) or description.HasField("pending_workflow_task"))
    )
