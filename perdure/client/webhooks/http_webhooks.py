"""The webhooks and the addresses of a user of a gateway."""

import re
from dataclasses import dataclass

from perdure.api.addresses import Address, AddressList, CreateAddress, CreatedAddress
from perdure.api.webhooks import (
    WEBHOOK_ID_PATTERN,
    CreatedWebhook,
    CreateWebhook,
    SentTest,
    Webhook,
    WebhookList,
)
from perdure.client.http.client import HttpClient
from perdure.client.webhooks.protocol import absent_address, absent_webhook

WEBHOOKS, ADDRESSES = "/v1/webhooks", "/v1/addresses"

_ID = re.compile(WEBHOOK_ID_PATTERN, re.ASCII)
"""The pattern of the ids of both."""


@dataclass(frozen=True)
class HttpWebhooks:
    """The webhooks of one user of a gateway, with the methods of `Webhooks`."""

    client: HttpClient

    async def create(self, definition: CreateWebhook) -> CreatedWebhook:
        """Create a webhook; see `Webhooks.create`."""
        return await self.client.connection.post(WEBHOOKS, CreatedWebhook, definition)

    async def list_webhooks(self) -> list[Webhook]:
        """List the webhooks of the user, the oldest first."""
        return list((await self.client.connection.get(WEBHOOKS, WebhookList)).items)

    async def get(self, webhook_id: str) -> Webhook:
        """Describe a webhook, with its last deliveries. Raises NotFound."""
        return await self.client.connection.get(_path_of(WEBHOOKS, webhook_id), Webhook)

    async def rotate(self, webhook_id: str) -> CreatedWebhook:
        """Give a webhook a new secret; see `Webhooks.rotate`. Raises NotFound."""
        path = f"{_path_of(WEBHOOKS, webhook_id)}/rotate"
        return await self.client.connection.post(path, CreatedWebhook, None)

    async def test(self, webhook_id: str) -> str:
        """Post an event `test`, and return its id. Raises NotFound, Conflict."""
        path = f"{_path_of(WEBHOOKS, webhook_id)}/test"
        return (await self.client.connection.post(path, SentTest, None)).id

    async def delete(self, webhook_id: str) -> None:
        """Delete a webhook: nothing is posted any more. Raises NotFound."""
        await self.client.connection.delete(_path_of(WEBHOOKS, webhook_id))


@dataclass(frozen=True)
class HttpAddresses:
    """The addresses of one user of a gateway, with the methods of `Addresses`."""

    client: HttpClient

    async def create(self, definition: CreateAddress) -> CreatedAddress:
        """Create an address; see `Addresses.create`."""
        return await self.client.connection.post(ADDRESSES, CreatedAddress, definition)

    async def list_addresses(self) -> list[Address]:
        """List the addresses, the oldest first."""
        return list((await self.client.connection.get(ADDRESSES, AddressList)).items)

    async def revoke(self, address_id: str) -> None:
        """Revoke an address: nothing that is posted there arrives. Raises NotFound."""
        await self.client.connection.delete(_path_of(ADDRESSES, address_id))


def _path_of(resource: str, item_id: str) -> str:
    """Raises NotFound for what is no id."""
    if not _ID.fullmatch(item_id):
        raise absent_address(item_id) if resource == ADDRESSES else absent_webhook(item_id)
    return f"{resource}/{item_id}"
