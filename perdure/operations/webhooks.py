"""The activities of webhooks: a worker posts events, and records what nobody has taken."""

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from perdure.activities.registry import Activity
from perdure.activities.support.resources import Resources
from perdure.activities.support.step import check_owner, final_failure
from perdure.agent.loop.inbox import WebhookFailure
from perdure.client.client import Client
from perdure.errors import Conflict, Invalid, NotFound
from perdure.operations.schedules import attempt
from perdure.secrets.webhooks import Webhook, WebhookVault
from perdure.settings.settings import Settings
from perdure.temporal.webhooks import (
    DELIVER,
    FAILURE_SIGNAL,
    GONE,
    RECORD_FAILURE,
    DeliveryFailure,
    DeliveryOrder,
    Patience,
)
from perdure.temporal.worker_load import waiting
from perdure.webhooks.signing import sign

MAX_DOUBLINGS = 20
MAX_REASON_CHARS = 500

STATUS_GONE = 410


@dataclass
class WebhookActivities:
    """The activities of deliveries, by a client of the worker's own servers."""

    client: Client
    resources: Resources

    @property
    def all(self) -> list[Activity]:
        return [self.deliver, self.record_failure]

    @activity.defn(name=DELIVER)
    async def deliver(self, order: DeliveryOrder) -> None:
        """Post an event to its webhook, unless that is there no more."""
        check_owner(order.user_id)
        async with attempt():
            try:
                webhook = await self._vault(order.user_id).get_webhook(order.webhook_id)
            except NotFound:
                return
            except Invalid as error:  # of a worker without the key: another may have it
                raise retry_later(str(error), order) from None
            if webhook.ended is None:
                await self._post(webhook, order)

    @activity.defn(name=RECORD_FAILURE)
    async def record_failure(self, failure: DeliveryFailure) -> None:
        """Record in the conversation that its event was not taken; end a webhook that is gone."""
        order = failure.order
        check_owner(order.user_id)
        async with attempt():
            if failure.is_gone:
                await self._end(order)
            if order.conversation_id is not None:
                await self._note(order, failure.reason)

    async def _post(self, webhook: Webhook, order: DeliveryOrder) -> None:
        """Raises ApplicationError, which says when the next attempt is due."""
        from perdure.webhooks.posting import Unanswered, post  # slow: it loads aiohttp

        now = datetime.now(UTC)
        signed = sign(webhook.secret_values(now), order.event_id, now, order.body)
        headers = {**signed, "Content-Type": "application/json", "User-Agent": "perdure"}
        try:
            with waiting():
                answer = await post(
                    *(webhook.url, order.body.encode(), headers),
                    self.resources.webhook_networks,
                    order.patience.answer_timeout,
                )
        except Unanswered as error:
            raise retry_later(str(error), order) from None
        except Invalid as error:
            raise final_failure("Refused", str(error)) from error
        if answer.status == STATUS_GONE:
            raise final_failure(GONE, "the receiver wants no more posts (410 Gone)")
        if not answer.is_taken:
            raise retry_later(f"the receiver said {answer.status}", order, answer.retry_after)

    async def _end(self, order: DeliveryOrder) -> None:
        vault = self._vault(order.user_id)
        try:
            await vault.end_webhook(order.webhook_id, "Its receiver answered 410 Gone.")
        except NotFound:
            return

    async def _note(self, order: DeliveryOrder, reason: str) -> None:
        assert order.conversation_id is not None, "a test has no conversation"
        client = self.client.as_user(order.user_id)
        conversation = client.conversation(order.conversation_id)
        item = WebhookFailure(
            webhook_id=order.webhook_id,
            event=order.event,
            event_id=order.event_id,
            reason=reason[:MAX_REASON_CHARS],
        )
        try:
            title = (await conversation.require_open()).title
        except (Conflict, NotFound):  # closed or purged meanwhile: its log takes no more
            return
        await conversation.workflow.signal_with_start(FAILURE_SIGNAL, [item], title=title)

    def _vault(self, user_id: str) -> WebhookVault:
        return WebhookVault(self.resources.store, user_id, self.resources.secret_keys)


def read_patience(settings: Settings) -> Patience:
    return Patience(
        give_up_after=settings.webhook_retry_time, first_delay=settings.webhook_retry_delay
    )


def retry_later(
    reason: str, order: DeliveryOrder, retry_after: float | None = None
) -> ApplicationError:
    """Build the failure of an attempt, with the time of the next: what the receiver asks, or twice
    that of before; at random a little more or less, so that not all come at once.
    """
    patience, doublings = order.patience, min(activity.info().attempt - 1, MAX_DOUBLINGS)
    delay = min(patience.first_delay * 2**doublings, patience.max_delay)
    spread = delay * random.uniform(0.8, 1.2)
    return ApplicationError(
        reason[:MAX_REASON_CHARS],
        type="Undelivered",
        category=ApplicationErrorCategory.BENIGN,  # it is the receiver's: no warning each time
        next_retry_delay=timedelta(seconds=max(spread, retry_after or 0.0)),
    )
