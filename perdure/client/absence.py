"""The absence of a workflow that Temporal should know."""

from perdure.errors import ClientError, Conflict, NotFound
from perdure.storage.log.readable import ReadableLog


class WorkflowLost(Conflict):
    """Temporal does not know the workflow of a conversation that has a log."""


async def explain_absence(log: ReadableLog) -> ClientError:
    """Return the error of a conversation that is waited for, and that Temporal does not know."""
    if await log.end() == 0:
        return NotFound.for_conversation(log.conversation_id)
    return WorkflowLost(
        "Temporal does not know the workflow of the conversation any more.",
        f"Start it again from its log: `perdure reopen {log.conversation_id}`",
    )
