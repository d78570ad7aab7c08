"""The deletion of conversations: their objects, and their histories in Temporal."""

from collections.abc import Sequence
from dataclasses import dataclass

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client as Temporal
from temporalio.service import RPCError

from perdure.client.ask import ask_workflow_prefix
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.errors import Conflict, NotFound
from perdure.storage.conversations import conversation_exists
from perdure.storage.errors import StillForked
from perdure.storage.log.fork import forks_of
from perdure.storage.log.purge import purge as delete_objects


@dataclass(frozen=True)
class PurgeResult:
    """The numbers of deleted objects and histories."""

    objects: dict[str, int]
    """The number of deleted objects of each conversation."""
    histories: int = 0
    undeleted_reason: str | None = None
    """The reason why Temporal keeps other histories, until its retention time is over."""


async def list_purge_targets(
    client: Client, conversation_id: str, with_forks: bool = False
) -> list[str]:
    """List the conversations to purge, forks before the conversations they start from.

    Raises NotFound, Unreachable, and Conflict if one is running, or has forks without `with_forks`.
    """
    conversation = client.conversation(conversation_id)
    if not await conversation_exists(client.store, client.user_id, conversation_id):
        raise NotFound.for_conversation(conversation_id)
    if await conversation.workflow.is_running():
        message = f"The workflow of the conversation {conversation_id} is running."
        raise Conflict(message, f"Close it first: `perdure close {conversation_id}`.")
    forks = await forks_of(conversation.log)
    if forks and not with_forks:
        raise _to_conflict(StillForked(conversation_id, forks))
    targets: list[str] = []
    for fork in forks:
        targets += await list_purge_targets(client, fork, with_forks=True)
    return [*targets, conversation_id]


async def purge(client: Client, conversation_ids: Sequence[str]) -> PurgeResult:
    """Delete conversations in the order of `list_purge_targets`. Raises Conflict, StoreError."""
    objects: dict[str, int] = {}
    histories, obstacle = 0, None
    for conversation in map(client.conversation, conversation_ids):
        try:
            objects[conversation.id] = await delete_objects(conversation.log)
        except StillForked as error:
            raise _to_conflict(error) from error
        try:
            histories += await _delete_histories(client.temporal, conversation)
        except RPCError as error:
            obstacle = error.message
    return PurgeResult(objects, histories, obstacle)


def _to_conflict(error: StillForked) -> Conflict:
    return Conflict(str(error), "Or purge them all: --with-forks.")


async def _delete_histories(temporal: Temporal, conversation: Conversation) -> int:
    """Delete the histories of the conversation and of questions about it; return their number."""
    prefix = ask_workflow_prefix(conversation.id)
    query = f"WorkflowId = '{conversation.workflow_id}' OR WorkflowId STARTS_WITH '{prefix}'"
    runs = {(run.id, run.run_id) async for run in temporal.list_workflows(query)}
    if (newest := await conversation.workflow.describe()) is not None:  # lists lag behind
        newest_run = newest.workflow_execution_info.execution
        runs.add((newest_run.workflow_id, newest_run.run_id))
    for workflow_id, run_id in runs:
        request = DeleteWorkflowExecutionRequest(
            namespace=temporal.namespace,
            workflow_execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        )
        await temporal.workflow_service.delete_workflow_execution(request)
    return len(runs)
