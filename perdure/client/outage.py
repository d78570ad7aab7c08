"""Checks of whether a workflow still runs, through outages of Temporal."""

from temporalio.client import WorkflowFailureError
from temporalio.service import RPCError

from perdure.client.absence import explain_absence
from perdure.client.description import is_running
from perdure.client.patience import Outage
from perdure.client.workflow import ConversationWorkflow
from perdure.errors import Conflict, Unreachable


async def check_workflow(workflow: ConversationWorkflow, outage: Outage) -> None:
    """Raise Conflict if the workflow failed or vanished, Unreachable after a long outage.

    Raises NotFound where there is no such conversation either.
    """
    try:
        description = await workflow.describe()
    except Unreachable as error:
        outage.bear(error, workflow.log.conversation_id)
        return
    outage.end()
    if is_running(description):
        return
    if description is None:
        raise await explain_absence(workflow.log)
    try:
        await workflow.handle.result()
    except RPCError as error:
        raise Unreachable(f"Temporal does not answer any more: {error.message}") from error
    except WorkflowFailureError as error:
        raise Conflict(f"The conversation's workflow failed: {error.cause}") from error
