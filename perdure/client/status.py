"""The status of a conversation now: the workflow's, its steps', and what blocks it."""

import asyncio
import contextlib

from perdure.agent.loop.start import ConversationStatus, build_status
from perdure.agent.loop.state import State
from perdure.client.diagnosis.diagnose import MAX_SILENCE, DiagnosisOptions, diagnose_workflow
from perdure.client.live import list_running_steps
from perdure.client.logged_status import read_logged_status
from perdure.client.running_step import RunningStep, with_steps
from perdure.client.trouble import ENDED_CAUSE, Trouble, temporal_unreachable
from perdure.client.workflow import ConversationWorkflow
from perdure.errors import NotFound, Unreachable
from perdure.storage.errors import StoreError


async def read_status(workflow: ConversationWorkflow) -> ConversationStatus:
    """Query the workflow for its status; read it from the log if the workflow has ended.

    Raises NotFound, StoreError, and Unreachable if neither Temporal nor the log knows of it.
    """
    status, trouble, steps = await asyncio.gather(
        workflow.query_status(), find_trouble(workflow), _list_steps(workflow)
    )
    if status is None or (trouble is not None and trouble.is_over):
        status = await _read_logged_status(workflow)  # which a failed workflow may not have read
    else:
        status = with_steps(await _read_unless_opened(status, workflow), steps)
    if trouble is None or (trouble.cause == ENDED_CAUSE and status.status != "running"):
        return status
    return status.model_copy(update={"trouble": trouble.sentence})


async def find_trouble(
    workflow: ConversationWorkflow, max_silence: float = MAX_SILENCE
) -> Trouble | None:
    """Find what blocks the workflow, or blocked it when it ended; an outage of Temporal, too."""
    try:
        return await diagnose_workflow(workflow, DiagnosisOptions(max_silence))
    except Unreachable as error:
        return temporal_unreachable(error)


async def _list_steps(workflow: ConversationWorkflow) -> tuple[RunningStep, ...]:
    try:
        return await list_running_steps(workflow)
    except Unreachable:  # the diagnosis says so
        return ()


async def _read_unless_opened(
    status: ConversationStatus, workflow: ConversationWorkflow
) -> ConversationStatus:
    """Read the status from the log where the workflow, started for it, has yet to open it."""
    if status.next_seq == 0:
        with contextlib.suppress(StoreError):  # the diagnosis says so
            logged = await read_logged_status(workflow.log)
            return logged.model_copy(update={"waiting": status.waiting}) if logged else status
    return status


async def _read_logged_status(workflow: ConversationWorkflow) -> ConversationStatus:
    name = workflow.log.conversation_id
    status = await read_logged_status(workflow.log)
    if status is None and not await workflow.is_running():
        raise NotFound.for_conversation(name)
    return status or build_status(name, State())
