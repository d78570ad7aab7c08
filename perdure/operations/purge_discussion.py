"""The deletion of discussions: their logs, their agents' conversations, and their histories."""

import asyncio
import contextlib

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import WorkflowFailureError
from temporalio.service import RPCError

from perdure.client.client import Client
from perdure.client.description import describe_workflow
from perdure.client.discussion.discussions import Discussions
from perdure.client.discussion.handle import DiscussionHandle
from perdure.errors import Conflict, NotFound
from perdure.operations.purge import END_TIMEOUT, PurgeResult, list_purge_targets, purge
from perdure.storage.discussions.purge import purge_session
from perdure.temporal.connect import translate_rpc_errors


async def list_discussion_targets(
    client: Client, session_id: str, with_forks: bool = False, force: bool = False
) -> list[str]:
    """List the conversations to purge with a discussion: those of its agents.

    Raises NotFound, Unreachable, and Conflict if it runs without `force`, or if a conversation has
    forks without `with_forks`.
    """
    handle = Discussions.from_client(client).get(session_id)
    spec = await handle.spec()
    if not force and await handle.is_running():
        message = f"The discussion {session_id} is running."
        hint = f"Close it first (`perdure discussion close {session_id}`), or --force."
        raise Conflict(message, hint)
    targets: list[str] = []
    for name in spec.speakers():
        with contextlib.suppress(NotFound):  # it never took a turn
            conversation_id = handle.conversation_id(name)
            targets += await list_purge_targets(client, conversation_id, with_forks, force=True)
    return targets


async def purge_discussion(client: Client, session_id: str, targets: list[str]) -> PurgeResult:
    """Delete a discussion with the conversations that were listed. Raises Conflict, StoreError."""
    handle = Discussions.from_client(client).get(session_id)
    await _end_workflow(handle)
    purged = await purge(client, targets)
    objects = await purge_session(client.store, client.user_id, session_id)
    counts = {session_id: objects, **purged.objects}
    try:
        histories = purged.histories + await _delete_histories(handle)
    except RPCError as error:
        return PurgeResult(counts, purged.histories, purged.undeleted_reason or error.message)
    return PurgeResult(counts, histories, purged.undeleted_reason)


async def _end_workflow(handle: DiscussionHandle) -> None:
    """End the workflow, so that nobody writes what is deleted. Raises Unreachable."""
    if not await handle.is_running():
        return
    with translate_rpc_errors("did not end the workflow"):
        await handle.handle.cancel()
        with contextlib.suppress(TimeoutError, WorkflowFailureError):
            async with asyncio.timeout(END_TIMEOUT):
                await handle.handle.result()
        if await handle.is_running():
            await handle.handle.terminate("perdure discussion rm")


async def _delete_histories(handle: DiscussionHandle) -> int:
    """Delete the histories of the discussion's workflow; return their number."""
    temporal, workflow_id = handle.temporal, handle.handle.id
    query = f"WorkflowId = '{workflow_id}'"
    runs = {run.run_id async for run in temporal.list_workflows(query)}
    if (newest := await describe_workflow(temporal, workflow_id)) is not None:  # lists lag behind
        runs.add(newest.workflow_execution_info.execution.run_id)
    for run_id in runs:
        request = DeleteWorkflowExecutionRequest(
            namespace=temporal.namespace,
            workflow_execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        )
        await temporal.workflow_service.delete_workflow_execution(request)
    return len(runs)
