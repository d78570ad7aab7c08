"""Conversations on behalf of another one, as children of its workflow."""

from temporalio import workflow
from temporalio.exceptions import ChildWorkflowError, WorkflowAlreadyStartedError

from agent.start import Snapshot, Start

STARTED = "its conversation was begun before, by a workflow that was lost, and may still be running"


async def outcome(start: Start) -> str | None:
    """Run a child conversation to the end of its turn; why it failed, where it did.

    A cancellation is passed on to the child, which closes.
    """
    try:
        await workflow.execute_child_workflow(
            "Conversation",
            start,
            id=f"conv-{start.conversation_id}",
            result_type=Snapshot,
            cancellation_type=workflow.ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
            static_summary=f"delegated by {start.parent.conversation_id}" if start.parent else None,
            parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
        )
    except WorkflowAlreadyStartedError:
        return STARTED
    except ChildWorkflowError as error:
        return f"its conversation failed: {error.cause or error}"
    return None
