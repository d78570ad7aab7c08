"""Turns of a schedule that begin because of a post, and not at one of its times."""

import contextlib
from datetime import timedelta

from temporalio.client import ScheduleActionStartWorkflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from perdure.client.client import Client
from perdure.client.ids import derive_message_id
from perdure.client.images import make_message
from perdure.client.schedules.schedules import translate_errors
from perdure.errors import Conflict
from perdure.temporal.names import firing_workflow_id, schedule_id
from perdure.temporal.schedules import FiringOrder


async def begin_turn(client: Client, name: str, text: str, post_id: str) -> str:
    """Begin a turn with the task of a schedule and a text below it; return its message's id.

    The same `post_id` begins one turn. No overlap policy is asked: what a post says would be lost.
    Raises NotFound, Invalid for a text that is too long, Conflict while the schedule is paused, and
    Unreachable.
    """
    workflow_id = f"{firing_workflow_id(client.user_id, name)}-{post_id}"
    with translate_errors(name):
        own_id = schedule_id(client.user_id, name)
        schedule = (await client.temporal.get_schedule_handle(own_id).describe()).schedule
        if schedule.state.paused:
            raise Conflict("The schedule of this address is paused.", "Post it again later.")
        assert isinstance(schedule.action, ScheduleActionStartWorkflow)
        order = await _read_order(client, schedule.action)
        order = order.model_copy(update={"text": f"{order.text}\n\n{text}", "waits": False})
        make_message(order.text, None, ())  # else nobody but Temporal's UI tells what is too long
        await _start(client, schedule.action, workflow_id, order)
    return derive_message_id(client.user_id, workflow_id)


async def _read_order(client: Client, action: ScheduleActionStartWorkflow) -> FiringOrder:
    """Read what the schedule begins, with its agent as that was when it was created."""
    converter = client.temporal.data_converter
    [order] = await converter.decode(action.args, [FiringOrder])
    assert isinstance(order, FiringOrder)
    return order


async def _start(
    client: Client, action: ScheduleActionStartWorkflow, workflow_id: str, order: FiringOrder
) -> None:
    with contextlib.suppress(WorkflowAlreadyStartedError):
        await client.temporal.start_workflow(
            action.workflow,
            order,
            id=workflow_id,
            task_queue=action.task_queue,
            task_timeout=action.task_timeout or timedelta(),
            priority=action.priority,
            static_summary=f"{order.name}: a post",
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
        )
