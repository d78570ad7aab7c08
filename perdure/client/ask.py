"""Side questions to an agent at any time; neither question nor answer enters the log."""

import asyncio
from uuid import uuid4

from temporalio.client import WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ActivityError

from perdure.agent.loop.ask import Ask, AskResponse
from perdure.agent.loop.inbox import UserMessage, find_message_error
from perdure.agent.loop.steps import Task
from perdure.client.client import Client
from perdure.errors import Conflict, Invalid, NotFound, TimedOut
from perdure.temporal.connect import translate_rpc_errors


async def ask(
    client: Client, conversation_id: str, question: str, max_wait: float | None = None
) -> AskResponse:
    """Ask the agent a question about the conversation so far, and return its answer.

    Raises Invalid, NotFound, Unreachable, Conflict if the model gives no answer, and TimedOut
    after `max_wait` seconds.
    """
    if problem := find_message_error(UserMessage(text=question)):
        raise Invalid(problem)
    log = client.conversation(conversation_id).log
    end = await log.end()
    if end == 0:
        raise NotFound.for_conversation(conversation_id)
    task = Task[Ask](
        conversation_id=conversation_id, user_id=log.user_id, base=end, step=Ask(question=question)
    )
    with translate_rpc_errors("did not take the question"):
        handle = await client.temporal.start_workflow(
            "Ask",
            task,
            id=f"{ask_workflow_prefix(conversation_id)}{uuid4()}",
            task_queue=client.task_queue,
            result_type=AskResponse,
        )
        return await _await_answer(handle, max_wait)


def ask_workflow_prefix(conversation_id: str) -> str:
    """Build the prefix of the workflow ids of all questions about a conversation."""
    return f"ask-{conversation_id}-"


async def _await_answer(
    handle: WorkflowHandle[object, AskResponse], max_wait: float | None
) -> AskResponse:
    """Await the answer; cancel the workflow when the caller stops waiting, as nobody else does."""
    try:
        async with asyncio.timeout(max_wait):
            return await handle.result()
    except TimeoutError as error:
        await handle.cancel()
        hint = "Start a worker with `perdure dev` or `perdure worker`, and ask again."
        raise TimedOut(f"There was no answer within {max_wait:g} s.", hint) from error
    except asyncio.CancelledError:
        await handle.cancel()
        raise
    except WorkflowFailureError as error:
        cause = error.cause.cause if isinstance(error.cause, ActivityError) else error.cause
        raise Conflict(str(cause)) from error
