"""Side questions to an agent at any time; neither question nor answer enters the log."""

import asyncio
from typing import Protocol
from uuid import uuid4

from temporalio.client import Client as TemporalClient
from temporalio.client import WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ActivityError

from perdure.agent.loop.ask import Ask, AskResponse
from perdure.agent.loop.inbox import UserMessage, find_message_error
from perdure.agent.loop.steps import Task
from perdure.client.access import require_access
from perdure.client.conversation import Conversation
from perdure.errors import Conflict, Invalid, NotFound, TimedOut
from perdure.temporal.connect import translate_rpc_errors
from perdure.temporal.fairness import user_priority
from perdure.temporal.names import ask_workflow_prefix


class AskClient(Protocol):
    """The part of a client that a question needs."""

    @property
    def temporal(self) -> TemporalClient: ...
    @property
    def task_queue(self) -> str: ...
    def conversation(self, conversation_id: str, owner: str | None = None) -> Conversation: ...


async def ask(
    client: AskClient,
    conversation_id: str,
    question: str,
    max_wait: float | None = None,
    owner: str | None = None,
) -> AskResponse:
    """Ask the agent a question about the conversation so far, and return its answer.

    A conversation of another `owner` needs the grant `write`: the answer is at that user's cost.

    Raises Invalid, NotFound, Unreachable, Conflict if the model gives no answer, and TimedOut
    after `max_wait` seconds.
    """
    if problem := find_message_error(UserMessage(text=question)):
        raise Invalid(problem)
    log = client.conversation(conversation_id, owner).log
    await require_access(log.store, "write")
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
            id=f"{ask_workflow_prefix(log.user_id, conversation_id)}{uuid4()}",
            task_queue=client.task_queue,
            priority=user_priority(log.user_id),
            result_type=AskResponse,
        )
        return await _await_answer(handle, max_wait)


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
