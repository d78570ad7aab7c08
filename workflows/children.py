"""Delegated conversations, run as child workflows."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ChildWorkflowError, WorkflowAlreadyStartedError

from perdure.agent.loop.start import ConversationStatus, Start
from perdure.temporal.timeouts import TASK_TIMEOUT
from perdure.workflows.ids import child_id
from perdure.workflows.step_failures import reason_of

STOPPED_BEFORE_START = "it was stopped before its conversation began"

ALREADY_STARTED = (
    "its conversation was begun before, by a workflow that was lost, and may still be running"
)


async def run_child(
    start: Start, await_interruptible: Callable[[Awaitable[Any]], Awaitable[Any]]
) -> str | None:
    """Run a child conversation to the end of its turn; return why it failed, or None.

    `await_interruptible` passes a cancellation on to the child, which closes. A `start` with a
    state has ended its turn already.
    """
    if start.state is not None:
        return None
    try:
        # Cancelling the start of a child would leave it running: cancel it once it runs.
        child = await workflow.start_child_workflow(
            "Conversation",
            start,
            id=child_id(start.conversation_id),
            result_type=ConversationStatus,
            cancellation_type=workflow.ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
            task_timeout=TASK_TIMEOUT,
            static_summary=f"delegated by {start.parent.conversation_id}" if start.parent else None,
            parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
        )
        await await_interruptible(child)
    except asyncio.CancelledError:
        return None  # it ended in the moment in which it was to be cancelled
    except WorkflowAlreadyStartedError:
        return ALREADY_STARTED
    except ChildWorkflowError as error:
        return f"its conversation failed: {reason_of(error)}"
    return None
