"""Asking an agent something beside its task, whatever it is doing; nothing of it is kept."""

import asyncio
from uuid import uuid4

from temporalio.client import WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ActivityError
from temporalio.service import RPCError

from agent.ask import Aside, Ask
from agent.inbox import Said, fault
from agent.steps import Task
from client.client import Client
from client.errors import Conflict, Invalid, NotFound, TimedOut, Unreachable

WORKFLOW = "Ask"

HINT = "Start a worker with `perdure dev` or `perdure worker`, and ask again."


async def ask(
    client: Client, conversation_id: str, question: str, wait: float | None = None
) -> Aside:
    """What the agent answers from what it knows by now.

    Raises Invalid, NotFound, Unreachable, Conflict where the model gives no answer, and TimedOut
    after `wait` seconds.
    """
    if wrong := fault(Said(text=question)):
        raise Invalid(wrong)
    log = client.conversation(conversation_id).log
    end = await log.end()
    if end == 0:
        raise NotFound.of(conversation_id)
    task = Task[Ask](
        conversation_id=conversation_id, user_id=log.user_id, base=end, step=Ask(question=question)
    )
    try:
        handle = await client.temporal.start_workflow(
            WORKFLOW,
            task,
            id=f"{prefix_of(conversation_id)}{uuid4()}",
            task_queue=client.task_queue,
            result_type=Aside,
        )
        return await _answer(handle, wait)
    except RPCError as error:
        raise Unreachable(f"Temporal did not take the question: {error.message}") from error


def prefix_of(conversation_id: str) -> str:
    """How the workflow ids of all questions about a conversation begin."""
    return f"ask-{conversation_id}-"


async def _answer(handle: WorkflowHandle[object, Aside], wait: float | None) -> Aside:
    """Nobody else waits for it: with the one who asked, the question is given up."""
    try:
        async with asyncio.timeout(wait):
            return await handle.result()
    except TimeoutError as error:
        await handle.cancel()
        raise TimedOut(f"There was no answer within {wait:g} s.", HINT) from error
    except asyncio.CancelledError:
        await handle.cancel()
        raise
    except WorkflowFailureError as error:
        cause = error.cause.cause if isinstance(error.cause, ActivityError) else error.cause
        raise Conflict(str(cause)) from error
