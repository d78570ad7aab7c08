"""Deleting conversations for good: their objects, and what Temporal remembers of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client as Temporal
from temporalio.service import RPCError

from client.ask import prefix_of
from client.client import Client
from client.conversation import Conversation
from client.errors import Conflict, NotFound
from storage.conversations import exists
from storage.errors import StillForked
from storage.fork import forks_of
from storage.purge import purge as delete_objects


@dataclass(frozen=True)
class Purged:
    """How many `objects` were deleted of each conversation, and how many histories in Temporal.

    `kept` says why Temporal keeps others; they end with its retention time.
    """

    objects: dict[str, int]
    histories: int = 0
    kept: str | None = None


async def doomed(client: Client, conversation_id: str, with_forks: bool = False) -> list[str]:
    """The conversations that `purge` would delete, each before those that it begins with.

    Raises NotFound, Unreachable, and Conflict where one of them is running, or has forks that are
    not meant.
    """
    conversation = client.conversation(conversation_id)
    if not await exists(client.store, client.user_id, conversation_id):
        raise NotFound.of(conversation_id)
    if await conversation.remote.is_alive():
        raise Conflict(
            f"The workflow of the conversation {conversation_id} is running.",
            f"Close it first: `perdure close {conversation_id}`.",
        )
    forks = await forks_of(conversation.log)
    if forks and not with_forks:
        raise _still_forked(StillForked(conversation_id, forks))
    found = [one for fork in forks for one in await doomed(client, fork, with_forks=True)]
    return [*found, conversation_id]


async def purge(client: Client, conversation_ids: Sequence[str]) -> Purged:
    """Delete the conversations, in this order; see `doomed`. Raises Conflict, StoreError."""
    objects: dict[str, int] = {}
    histories, kept = 0, None
    for conversation in map(client.conversation, conversation_ids):
        try:
            objects[conversation.id] = await delete_objects(conversation.log)
        except StillForked as error:
            raise _still_forked(error) from error
        try:
            histories += await _forget(client.temporal, conversation)
        except RPCError as error:
            kept = error.message
    return Purged(objects, histories, kept)


def _still_forked(error: StillForked) -> Conflict:
    return Conflict(str(error), "Or purge them all: --with-forks.")


async def _forget(temporal: Temporal, conversation: Conversation) -> int:
    """Have Temporal delete the histories of the conversation, and of what was asked about it."""
    asked = prefix_of(conversation.id)
    query = f"WorkflowId = '{conversation.workflow_id}' OR WorkflowId STARTS_WITH '{asked}'"
    found = {(one.id, one.run_id) async for one in temporal.list_workflows(query)}
    if (newest := await conversation.remote.described()) is not None:  # lists lag behind
        run = newest.workflow_execution_info.execution
        found.add((run.workflow_id, run.run_id))
    for workflow_id, run_id in found:
        request = DeleteWorkflowExecutionRequest(
            namespace=temporal.namespace,
            workflow_execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        )
        await temporal.workflow_service.delete_workflow_execution(request)
    return len(found)
