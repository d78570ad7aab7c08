"""Conversations on behalf of another one, as children of its workflow."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ChildWorkflowError, WorkflowAlreadyStartedError

from agent.start import Snapshot, Start
from workflows.failures import why

STOPPED = "it was stopped before its conversation began"

STARTED = "its conversation was begun before, by a workflow that was lost, and may still be running"


async def outcome(
    start: Start, stoppable: Callable[[Awaitable[Any]], Awaitable[Any]]
) -> str | None:
    """Run a child conversation to the end of its turn; why it failed, where it did.

    `stoppable` waits for it, and passes a cancellation on to the child, which closes. One that is
    handed over with a state is at its end.
    """
    if start.state is not None:
        return None
    try:
        # What cancels the start of a child would leave it running: it is stopped once it runs.
        child = await workflow.start_child_workflow(
            "Conversation",
            start,
            id=f"conv-{start.conversation_id}",
            result_type=Snapshot,
            cancellation_type=workflow.ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
            static_summary=f"delegated by {start.parent.conversation_id}" if start.parent else None,
            parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
        )
        await stoppable(child)
    except asyncio.CancelledError:
        return None  # it ended in the moment in which it was to be stopped
    except WorkflowAlreadyStartedError:
        return STARTED
    except ChildWorkflowError as error:
        return f"its conversation failed: {why(error)}"
    return None
