"""The workflow that a schedule starts: it begins a turn, and runs for as long as that goes on."""

import asyncio
from datetime import timedelta
from typing import TypeVar

from temporalio import workflow
from temporalio.exceptions import is_cancelled_exception
from temporalio.workflow import ContinueAsNewVersioningBehavior

from perdure.events.base import Frozen
from perdure.temporal.schedules import FIRE, INTERRUPT, SURVEY, FiringKey, FiringOrder
from perdure.temporal.timeouts import HEARTBEAT_TIMEOUT, UNLIMITED_RETRIES

ACTIVITY_TIMEOUT = timedelta(minutes=2)
"""Time limit of one attempt."""

FIRST_SURVEY = timedelta(seconds=2)
"""Time after which the conversation is looked at, and doubled with each look."""

MAX_SURVEY_INTERVAL = timedelta(minutes=2)

T = TypeVar("T")


@workflow.defn(name="Firing")
class Firing:
    """The turn of one time of a schedule.

    Temporal's overlap policies look at whether the workflow of the time before still runs.
    """

    @workflow.run
    async def run(self, order: FiringOrder) -> str:
        """Begin the turn, and return its conversation."""
        beginning = asyncio.ensure_future(self.begin(order))
        try:
            # A turn that has begun is known, and can be ended.
            conversation_id = await asyncio.shield(beginning)
            if order.waits:
                await self.await_rest(order, conversation_id)
        except (asyncio.CancelledError, Exception) as error:
            if is_cancelled_exception(error):  # by the overlap policy, or an operator
                await self.execute(INTERRUPT, self.key(order, await beginning), type(None))
            raise
        return conversation_id

    async def begin(self, order: FiringOrder) -> str:
        """Begin the turn, unless an earlier run has; return its conversation."""
        if order.earlier_id is not None:
            return order.earlier_id
        return await self.execute(FIRE, order, str)

    async def await_rest(self, order: FiringOrder, conversation_id: str) -> None:
        """Wait until the conversation is at rest."""
        interval = FIRST_SURVEY
        while True:
            await workflow.sleep(interval, summary="see whether its turn goes on")
            if not await self.execute(SURVEY, self.key(order, conversation_id), bool):
                return
            interval = min(2 * interval, MAX_SURVEY_INTERVAL)
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(
                    order.model_copy(update={"earlier_id": conversation_id}),
                    initial_versioning_behavior=ContinueAsNewVersioningBehavior.AUTO_UPGRADE,
                )

    async def execute(self, name: str, argument: Frozen, result: type[T]) -> T:
        answer: T = await workflow.execute_activity(
            name,
            argument,
            result_type=result,
            start_to_close_timeout=ACTIVITY_TIMEOUT,
            heartbeat_timeout=HEARTBEAT_TIMEOUT,
            retry_policy=UNLIMITED_RETRIES,
        )
        return answer

    def key(self, order: FiringOrder, conversation_id: str) -> FiringKey:
        return FiringKey(user_id=order.user_id, conversation_id=conversation_id)
