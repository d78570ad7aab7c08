"""The webhooks of a user, which the store keeps among the user's secrets."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import cast
from uuid import uuid4

import temporalio.client as temporal
from temporalio.client import WorkflowExecutionStatus

from perdure.api.webhooks import (
    CreatedWebhook,
    CreateWebhook,
    Delivery,
    DeliveryStatus,
    Post,
    Webhook,
)
from perdure.client.client import Client
from perdure.client.http.client import HttpClient
from perdure.errors import Conflict, Invalid, NotFound
from perdure.events.base import TIMESTAMP_FORMAT
from perdure.secrets.vault import build_key_ring
from perdure.secrets.webhooks import SigningSecret, WebhookVault, new_webhook_id
from perdure.secrets.webhooks import Webhook as StoredWebhook
from perdure.temporal.connect import translate_rpc_errors
from perdure.temporal.deliveries import start_delivery
from perdure.temporal.names import delivery_workflow_prefix
from perdure.temporal.webhooks import (
    DELIVERY_NOTE,
    DeliveryNote,
    DeliveryOrder,
    Patience,
)
from perdure.webhooks.networks import Networks, check_url, parse_networks
from perdure.webhooks.signing import new_secret

SHOWN_DELIVERIES = 20

TEST = "test"
"""The event of a post that somebody asks for, to try a receiver."""

TEST_PATIENCE = Patience(give_up_after=60.0, first_delay=1.0)

STATUSES: dict[WorkflowExecutionStatus, DeliveryStatus] = {
    WorkflowExecutionStatus.RUNNING: "pending",
    WorkflowExecutionStatus.COMPLETED: "delivered",
}


@dataclass(frozen=True)
class Webhooks:
    """The webhooks of one user: each posts events of all conversations, or of one, to a URL."""

    client: Client
    networks: Networks = field(default_factory=Networks)
    """The addresses that they may have."""

    @classmethod
    def from_client(cls, client: Client) -> "Webhooks":
        """Return the webhooks of a client's user; those of a gateway's are `HttpWebhooks`."""
        if isinstance(client, HttpClient):
            from perdure.client.webhooks.http_webhooks import HttpWebhooks

            return cast("Webhooks", HttpWebhooks(client))
        settings = client.settings
        return cls(client, parse_networks(settings.webhook_networks if settings else ()))

    async def create(self, definition: CreateWebhook) -> CreatedWebhook:
        """Create a webhook; whoever receives its posts checks them by the secret.

        Workers post what happens from a few seconds later on. Raises Invalid, also for a private
        address and where no `secret_keys` are set; NotFound for a conversation; Conflict for too
        many webhooks; StoreError.
        """
        await check_url(definition.url, self.networks)
        if (conversation_id := definition.conversation_id) is not None:
            await self._require(conversation_id)
        webhook = StoredWebhook(
            id=new_webhook_id(),
            url=definition.url,
            events=tuple(dict.fromkeys(definition.events)),
            conversation_id=conversation_id,
            created=datetime.now(UTC).strftime(TIMESTAMP_FORMAT),
            secrets=(SigningSecret(value=new_secret()),),
        )
        await self._vault().add_webhook(webhook)
        return _reveal(webhook)

    async def list_webhooks(self) -> list[Webhook]:
        """List the webhooks, the oldest first. Raises StoreError."""
        return [_describe(it) for it in await self._vault().list_webhooks()]

    async def get(self, webhook_id: str) -> Webhook:
        """Describe a webhook, with its last deliveries. Raises NotFound, Unreachable."""
        webhook = _describe(await self._vault().get_webhook(webhook_id))
        return webhook.model_copy(update={"deliveries": await self._list_deliveries(webhook_id)})

    async def rotate(self, webhook_id: str) -> CreatedWebhook:
        """Give a webhook a new secret; for a day the one of before signs as well.

        Raises NotFound, Invalid.
        """
        return _reveal(await self._vault().rotate(webhook_id, new_secret()))

    async def test(self, webhook_id: str) -> str:
        """Post an event `test`, and return its id; it is tried again for a minute.

        Raises NotFound, Unreachable, and Conflict for a webhook that has ended.
        """
        webhook = await self._vault().get_webhook(webhook_id)
        if webhook.ended is not None:
            raise Conflict(f"The webhook {webhook_id} has ended: {webhook.ended}")
        order = _build_test(self.client.user_id, webhook_id)
        with translate_rpc_errors("did not take the test"):
            await start_delivery(self.client.temporal, order, self.client.task_queue)
        return order.event_id

    async def delete(self, webhook_id: str) -> None:
        """Delete a webhook: nothing is posted any more. Raises NotFound, StoreError."""
        await self._vault().remove_webhook(webhook_id)

    async def _require(self, conversation_id: str) -> None:
        if not await self.client.conversation(conversation_id).exists():
            raise NotFound.for_conversation(conversation_id)

    async def _list_deliveries(self, webhook_id: str) -> tuple[Delivery, ...]:
        """List the last deliveries, the newest first. Raises Unreachable."""
        prefix = delivery_workflow_prefix(self.client.user_id, webhook_id)
        query = f"WorkflowId STARTS_WITH '{prefix}'"
        with translate_rpc_errors("did not list the deliveries"):
            found = [
                it
                async for it in self.client.temporal.list_workflows(query, limit=SHOWN_DELIVERIES)
            ]
        return tuple(await asyncio.gather(*map(_describe_delivery, found)))

    def _vault(self) -> WebhookVault:
        try:
            ring = build_key_ring(self.client.secret_keys)
            return WebhookVault(self.client.store, self.client.user_id, ring)
        except ValueError as error:
            raise Invalid(str(error)) from error


def _describe(webhook: StoredWebhook) -> Webhook:
    return Webhook(**webhook.model_dump(exclude={"secrets"}))


def _reveal(webhook: StoredWebhook) -> CreatedWebhook:
    fields = _describe(webhook).model_dump()
    return CreatedWebhook(**fields, secret=webhook.secrets[0].value)


def _build_test(user_id: str, webhook_id: str) -> DeliveryOrder:
    at = datetime.now(UTC).strftime(TIMESTAMP_FORMAT)
    return DeliveryOrder(
        user_id=user_id,
        webhook_id=webhook_id,
        event_id=str(uuid4()),
        event=TEST,
        body=Post(type=TEST, timestamp=f"{at}Z", data={"webhook_id": webhook_id}).model_dump_json(),
        patience=TEST_PATIENCE,
    )


async def _describe_delivery(found: temporal.WorkflowExecution) -> Delivery:
    note = await found.memo_value(DELIVERY_NOTE, type_hint=DeliveryNote)
    return Delivery(
        id=note.event_id,
        event=note.event,
        conversation_id=note.conversation_id,
        status=STATUSES.get(found.status, "failed") if found.status else "pending",
        started=_to_timestamp(found.start_time),
        ended=_to_timestamp(found.close_time) if found.close_time else None,
    )


def _to_timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime(TIMESTAMP_FORMAT)
