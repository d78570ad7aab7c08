"""The ids of a task that the id of its workflow names."""

from dataclasses import replace
from typing import Any

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from perdure.agent.loop.steps import Task
from perdure.temporal.names import DEFAULT_USER, conversation_id_of, owner_of


class TaskReader(Interceptor):
    """An interceptor that gives a task without a conversation that of its workflow."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Inbound(next)


class _Inbound(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        match input.args:
            case [Task(conversation_id="") as task]:
                input = replace(input, args=[_complete(task)])
        return await super().execute_activity(input)


def _complete(task: Task[Any]) -> Task[Any]:
    workflow_id = activity.info().workflow_id or ""
    ids = {
        "conversation_id": conversation_id_of(workflow_id),
        "user_id": owner_of(workflow_id) or DEFAULT_USER,
    }
    return task.model_copy(update=ids)
