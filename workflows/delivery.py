"""The workflow that delivers an event to a webhook, beside its conversation."""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

from perdure.temporal.timeouts import HEARTBEAT_TIMEOUT, UNLIMITED_RETRIES
from perdure.temporal.webhooks import (
    DELIVER,
    GONE,
    RECORD_FAILURE,
    DeliveryFailure,
    DeliveryOrder,
)

ATTEMPT_TIMEOUT = timedelta(minutes=2)
"""Time limit of one attempt, well above the one within which a receiver must answer."""


@workflow.defn(name="Delivery")
class Delivery:
    """The delivery of an event: it fails once the receiver has not taken it for a day."""

    @workflow.run
    async def run(self, order: DeliveryOrder) -> None:
        patience = order.patience
        try:
            await workflow.execute_activity(
                DELIVER,
                order,
                start_to_close_timeout=ATTEMPT_TIMEOUT,
                schedule_to_close_timeout=timedelta(seconds=patience.give_up_after),
                heartbeat_timeout=HEARTBEAT_TIMEOUT,
                retry_policy=RetryPolicy(
                    initial_interval=timedelta(seconds=patience.first_delay),
                    maximum_interval=timedelta(seconds=patience.max_delay),
                ),
                summary=f"post {order.event}",
            )
        except ActivityError as error:
            reason, is_gone = describe_failure(error)
            await self.record_failure(DeliveryFailure(order=order, reason=reason, is_gone=is_gone))
            raise ApplicationError(reason, type="Undelivered", non_retryable=True) from error

    async def record_failure(self, failure: DeliveryFailure) -> None:
        await workflow.execute_activity(
            RECORD_FAILURE,
            failure,
            start_to_close_timeout=ATTEMPT_TIMEOUT,
            heartbeat_timeout=HEARTBEAT_TIMEOUT,
            retry_policy=UNLIMITED_RETRIES,
        )


def describe_failure(error: ActivityError) -> tuple[str, bool]:
    """Return the reason of the last attempt, and whether the receiver wants no more."""
    cause: BaseException | None = error.cause
    while cause is not None and not isinstance(cause, ApplicationError):
        cause = cause.__cause__
    if cause is None:
        return "no attempt ended in time", False
    return cause.message, cause.type == GONE
