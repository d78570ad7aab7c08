"""Starting the workflow of a delivery."""

from temporalio.client import Client
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from perdure.temporal.fairness import user_priority
from perdure.temporal.names import delivery_workflow_id
from perdure.temporal.timeouts import TASK_TIMEOUT
from perdure.temporal.webhooks import DELIVERY_NOTE, DeliveryNote, DeliveryOrder


async def start_delivery(temporal: Client, order: DeliveryOrder, task_queue: str) -> None:
    """Start to deliver an event to a webhook, unless that was started before."""
    note = DeliveryNote(**order.model_dump(include=set(DeliveryNote.model_fields)))
    try:
        await temporal.start_workflow(
            "Delivery",
            order,
            id=delivery_workflow_id(order.user_id, order.webhook_id, order.event_id),
            task_queue=task_queue,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            task_timeout=TASK_TIMEOUT,
            memo={DELIVERY_NOTE: note},
            priority=user_priority(order.user_id),
        )
    except WorkflowAlreadyStartedError:
        return
