"""The workflow of a question beside a conversation, whose log never records it."""

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.workflow import ActivityConfig

from perdure.agent.loop.ask import Ask, AskResponse
from perdure.agent.loop.step_summary import shorten_summary
from perdure.agent.loop.steps import Task
from perdure.temporal.timeouts import UNLIMITED_RETRIES
from perdure.workflows.model_queues import KnownModelQueues
from perdure.workflows.step_runner import PLACEHOLDER_SPEC

ASK_HEARTBEAT_TIMEOUT = timedelta(seconds=10)
"""Longest silence of a worker before another one asks the model."""

ASK_TIMEOUT = timedelta(minutes=15)
"""Time limit of the answer, retries included."""


@workflow.defn(name="Ask")
class AskWorkflow:
    """Returns the answer, which is kept only in the history of this workflow."""

    @workflow.run
    async def run(self, task: Task[Ask]) -> AskResponse:
        async def ask(options: ActivityConfig) -> Any:
            return await workflow.execute_activity(
                task.step.kind, task, result_type=AskResponse, **options
            )

        options = ActivityConfig(
            heartbeat_timeout=ASK_HEARTBEAT_TIMEOUT,
            schedule_to_close_timeout=ASK_TIMEOUT,
            retry_policy=UNLIMITED_RETRIES,
            summary=shorten_summary(task.step.question),
        )
        queues = KnownModelQueues(None)
        answer: AskResponse = await queues.route_key(None, PLACEHOLDER_SPEC, options, ask)
        return answer
