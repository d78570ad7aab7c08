"""The ids in the id of a workflow, and those of its children."""

from temporalio import workflow

from perdure.agent.loop.start import Start
from perdure.temporal.names import (
    DEFAULT_USER,
    child_workflow_id,
    conversation_workflow_id,
    owner_of,
)

USERS_PATCH = "users-in-ids"
"""The patch since which the ids of children have the user of their parent's id."""


def child_id(conversation_id: str) -> str:
    """Return the workflow id of a conversation that this workflow starts or has started.

    A worker of a version before may have begun this run, and named its children without a user.
    """
    workflow_id = workflow.info().workflow_id
    if owner_of(workflow_id) is not None and not workflow.patched(USERS_PATCH):
        return conversation_workflow_id(DEFAULT_USER, conversation_id)
    return child_workflow_id(workflow_id, conversation_id)


def choose_task_ids(start: Start) -> dict[str, str]:
    """Return the ids that a task of this workflow must have: none if the workflow's id has them."""
    ids = {"conversation_id": start.conversation_id, "user_id": start.user_id}
    is_named = workflow.info().workflow_id == conversation_workflow_id(**ids)
    return {} if is_named else ids
