"""A question beside a conversation, in a workflow of its own: the conversation never learns."""

from datetime import timedelta

from temporalio import workflow

from agent.ask import Aside, Ask
from agent.steps import Task
from workflows.options import PATIENT

SILENT = timedelta(seconds=10)
"""How long a worker may be silent before another one asks."""

PATIENCE = timedelta(minutes=15)
"""How long the model may take, with all the times that it was unavailable."""


@workflow.defn(name="Ask")
class Asking:
    """Ends with the answer; it is not in the log, and gone with this workflow."""

    @workflow.run
    async def run(self, task: Task[Ask]) -> Aside:
        answer: Aside = await workflow.execute_activity(
            task.step.kind,
            task,
            result_type=Aside,
            heartbeat_timeout=SILENT,
            schedule_to_close_timeout=PATIENCE,
            retry_policy=PATIENT,
        )
        return answer
