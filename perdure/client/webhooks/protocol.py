"""The interfaces of webhooks and of addresses, over the store or over a gateway."""

from typing import Any, Protocol

from pydantic import ValidationError

from perdure.agent.loop.signals import NAME_RULE
from perdure.api.addresses import Address, CreateAddress, CreatedAddress
from perdure.api.webhooks import EVENT_NAMES, CreatedWebhook, CreateWebhook, Webhook
from perdure.errors import Invalid, NotFound
from perdure.events.validation_errors import describe_errors


class WebhookClient(Protocol):
    """The webhooks of a user, as `Webhooks` and `HttpWebhooks` have them."""

    async def create(self, definition: CreateWebhook) -> CreatedWebhook: ...
    async def list_webhooks(self) -> list[Webhook]: ...
    async def get(self, webhook_id: str) -> Webhook: ...
    async def rotate(self, webhook_id: str) -> CreatedWebhook: ...
    async def test(self, webhook_id: str) -> str: ...
    async def delete(self, webhook_id: str) -> None: ...


class AddressClient(Protocol):
    """The addresses of a user, as `Addresses` and `HttpAddresses` have them."""

    async def create(self, definition: CreateAddress) -> CreatedAddress: ...
    async def list_addresses(self) -> list[Address]: ...
    async def revoke(self, address_id: str) -> None: ...


def define_webhook(url: str, **fields: Any) -> CreateWebhook:
    """Build the definition of a webhook. Raises Invalid."""
    try:
        return CreateWebhook(url=url, **fields)
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0]) if first["loc"] else ""
        if field == "events":
            names = ", ".join(EVENT_NAMES)
            raise Invalid("This is no event of a conversation.", f"Use some of {names}.") from error
        raise Invalid(f"{field}: {first['msg']}.".removeprefix(": ")) from error


def define_address(conversation_id: str | None = None, **fields: Any) -> CreateAddress:
    """Build the definition of an address. Raises Invalid."""
    try:
        return CreateAddress(conversation_id=conversation_id, **fields)
    except ValidationError as error:
        if any(it["loc"] == ("signal",) for it in error.errors()):
            raise Invalid(f"This is no name of a signal: it has {NAME_RULE}.") from error
        raise Invalid(f"The address is not right: {describe_errors(error)}.") from error


def absent_address(address_id: str) -> NotFound:
    return NotFound(f"There is no address {address_id!r}.", "`perdure address ls` lists them.")


def absent_webhook(webhook_id: str) -> NotFound:
    return NotFound(f"There is no webhook {webhook_id!r}.", "`perdure webhook ls` lists them.")
