"""The deletion of conversations: their objects, and their histories in Temporal."""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client as Temporal
from temporalio.client import WorkflowFailureError
from temporalio.service import RPCError

from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.client.description import Description, describe_workflow
from perdure.client.ids import split_owner
from perdure.client.recorded_user import load_recorded_user
from perdure.errors import Conflict, NotFound
from perdure.storage.conversations import conversation_exists
from perdure.storage.errors import StillForked
from perdure.storage.list_index import remove_from_index
from perdure.storage.log.fork import forks_of
from perdure.storage.log.purge import purge as delete_objects
from perdure.storage.log.state import read_state_until_damage
from perdure.temporal.connect import translate_rpc_errors
from perdure.temporal.names import DEFAULT_USER, ask_workflow_prefix, conversation_workflow_id

END_TIMEOUT = 10.0
"""Seconds for a worker to end a workflow; then Temporal does."""


@dataclass(frozen=True)
class PurgeResult:
    """The numbers of deleted objects and histories."""

    objects: dict[str, int]
    """The number of deleted objects of each conversation."""
    histories: int = 0
    undeleted_reason: str | None = None
    """The reason why Temporal keeps other histories, until its retention time is over."""


async def list_purge_targets(
    client: Client, conversation_id: str, with_forks: bool = False, force: bool = False
) -> list[str]:
    """List the conversations to purge, forks before the conversations they start from.

    Raises NotFound, Unreachable, and Conflict if one is at work without `force`, has forks without
    `with_forks`, or forks of other users.
    """
    conversation = client.conversation(conversation_id)
    is_running = await conversation.workflow.is_running()
    if not is_running and not await conversation_exists(
        client.store, client.user_id, conversation_id
    ):
        raise NotFound.for_conversation(conversation_id)
    if is_running and not force and not await _is_at_rest(conversation):
        message = f"The conversation {conversation_id} is at work."
        raise Conflict(message, f"Close it first (`perdure close {conversation_id}`), or --force.")
    forks = await forks_of(conversation.log)
    if forks and not with_forks:
        raise _to_conflict(StillForked(conversation_id, forks))
    if others := [fork for fork in forks if split_owner(fork)[1] is not None]:
        raise Conflict(str(StillForked(conversation_id, others)), "Only their users delete those.")
    targets: list[str] = []
    for fork in forks:
        targets += await list_purge_targets(client, fork, with_forks=True, force=force)
    return [*targets, conversation_id]


async def _is_at_rest(conversation: Conversation) -> bool:
    """Tell by the log whether the agent waits for its user; its workflow lives on for a while."""
    state, _ = await read_state_until_damage(conversation.log)
    return state.next_seq > 0 and state.at_rest


async def purge(client: Client, conversation_ids: Sequence[str]) -> PurgeResult:
    """Delete conversations in the order of `list_purge_targets`. Raises Conflict, StoreError."""
    objects: dict[str, int] = {}
    histories, obstacle = 0, None
    for conversation in map(client.conversation, conversation_ids):
        await _end_workflow(conversation)
        try:
            objects[conversation.id] = await delete_objects(conversation.log)
        except StillForked as error:
            raise _to_conflict(error) from error
        await remove_from_index(client.store, client.user_id, conversation.id)
        try:
            histories += await _delete_histories(client.temporal, conversation)
        except RPCError as error:
            obstacle = error.message
    return PurgeResult(objects, histories, obstacle)


async def _end_workflow(conversation: Conversation) -> None:
    """End the workflow, so that nobody writes what is deleted. Raises Unreachable.

    A worker ends it between two steps; where none does in time, none can be writing for long.
    """
    if not await conversation.workflow.is_running():
        return
    with translate_rpc_errors("did not end the workflow"):
        await conversation.handle.cancel()
        with contextlib.suppress(TimeoutError, WorkflowFailureError):
            async with asyncio.timeout(END_TIMEOUT):
                await conversation.handle.result()
        if await conversation.workflow.is_running():
            await conversation.handle.terminate("perdure rm")


def _to_conflict(error: StillForked) -> Conflict:
    return Conflict(str(error), "Or purge them all: --with-forks.")


async def _delete_histories(temporal: Temporal, conversation: Conversation) -> int:
    """Delete the histories of the conversation and of questions about it; return their number."""
    address = conversation.workflow.address
    prefix = ask_workflow_prefix(address.user_id, conversation.id)
    query = f"WorkflowId = '{address.own_id}' OR WorkflowId STARTS_WITH '{prefix}'"
    runs = {(run.id, run.run_id) async for run in temporal.list_workflows(query)}
    if (newest := await conversation.workflow.describe()) is not None:  # lists lag behind
        newest_run = newest.workflow_execution_info.execution
        runs.add((newest_run.workflow_id, newest_run.run_id))
    if address.user_id != DEFAULT_USER:
        runs |= await _list_former_runs(temporal, conversation.id, address.user_id)
    for workflow_id, run_id in runs:
        request = DeleteWorkflowExecutionRequest(
            namespace=temporal.namespace,
            workflow_execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        )
        await temporal.workflow_service.delete_workflow_execution(request)
    return len(runs)


async def _list_former_runs(
    temporal: Temporal, conversation_id: str, user_id: str
) -> set[tuple[str, str]]:
    """List a user's runs under ids that versions before gave, whoever's workflows they were."""
    former_id = conversation_workflow_id(DEFAULT_USER, conversation_id)
    prefix = ask_workflow_prefix(DEFAULT_USER, conversation_id)
    query = f"WorkflowId = '{former_id}' OR WorkflowId STARTS_WITH '{prefix}'"
    found = [
        Description(workflow_execution_info=run.raw_info)
        async for run in temporal.list_workflows(query)
    ]
    if (newest := await describe_workflow(temporal, former_id)) is not None:
        found.append(newest)
    executions = [
        item.workflow_execution_info.execution
        for item in found
        if await load_recorded_user(temporal, item) == user_id
    ]
    return {(execution.workflow_id, execution.run_id) for execution in executions}
