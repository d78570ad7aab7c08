"""Webhooks: create, show, list, test, rotate and delete them."""

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Path, Request

from perdure.api.webhooks import (
    WEBHOOK_ID_PATTERN,
    CreatedWebhook,
    CreateWebhook,
    SentTest,
    Webhook,
    WebhookList,
)
from perdure.client.webhooks.webhooks import Webhooks
from perdure.gateway.callers import COSTLY, Caller, Reader, Writer
from perdure.gateway.edge.audit import audit
from perdure.webhooks.networks import parse_networks

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"])

WebhookId: TypeAlias = Annotated[str, Path(pattern=WEBHOOK_ID_PATTERN)]


@router.get("")
async def list_webhooks(caller: Reader) -> WebhookList:
    """List the webhooks of the user, the oldest first."""
    return WebhookList(items=tuple(await _webhooks(caller).list_webhooks()))


@router.post("", status_code=201, dependencies=COSTLY)
async def create_webhook(request: Request, body: CreateWebhook, caller: Writer) -> CreatedWebhook:
    """Create a webhook; the answer alone has the secret that signs its posts."""
    made = await _webhooks(caller).create(body)
    audit(request, "webhook.create", webhook=made.id)
    return made


@router.get("/{webhook_id}")
async def get_webhook(webhook_id: WebhookId, caller: Reader) -> Webhook:
    """Show a webhook, with its last deliveries."""
    return await _webhooks(caller).get(webhook_id)


@router.post("/{webhook_id}/rotate", dependencies=COSTLY)
async def rotate_secret(request: Request, webhook_id: WebhookId, caller: Writer) -> CreatedWebhook:
    """Give a webhook a new secret; for a day the one of before signs as well."""
    rotated = await _webhooks(caller).rotate(webhook_id)
    audit(request, "webhook.rotate", webhook=webhook_id)
    return rotated


@router.post("/{webhook_id}/test", dependencies=COSTLY)
async def test_webhook(webhook_id: WebhookId, caller: Writer) -> SentTest:
    """Post an event `test`, which is tried again for a minute."""
    return SentTest(id=await _webhooks(caller).test(webhook_id))


@router.delete("/{webhook_id}", status_code=204)
async def delete_webhook(request: Request, webhook_id: WebhookId, caller: Writer) -> None:
    """Delete a webhook: nothing is posted any more."""
    await _webhooks(caller).delete(webhook_id)
    audit(request, "webhook.delete", webhook=webhook_id)


def _webhooks(caller: Caller) -> Webhooks:
    networks = parse_networks(caller.gateway.settings.webhook_networks)
    return Webhooks(caller.client, networks)
