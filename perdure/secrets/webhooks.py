"""The webhooks of a user, which are kept as the user's secrets are: they have secrets."""

import secrets
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from pydantic import Field, ValidationError

from perdure.api.webhooks import MAX_WEBHOOKS, WebhookRecord
from perdure.errors import Conflict, Invalid, NotFound
from perdure.events.base import TIMESTAMP_FORMAT, Timestamp, Tolerant
from perdure.secrets.vault import UserSecret, Vault, is_webhook
from perdure.storage.keys import WEBHOOKS, webhook_folder

SIGNING = "WEBHOOK_SECRET"
"""The name that stands in place of a webhook's secret where that is masked."""

OVERLAP = timedelta(days=1)
"""The time for which posts are signed with the secret of before a rotation, too."""


class SigningSecret(Tolerant):
    """A secret by which posts are signed, until a time in UTC if it is that of before."""

    value: str = Field(repr=False)
    until: Timestamp | None = None


class Webhook(WebhookRecord):
    """A webhook with its secrets, the newest first."""

    secrets: tuple[SigningSecret, ...]

    def secret_values(self, at: datetime | None = None) -> list[str]:
        """Return the secrets, or those that are in force at a time."""
        moment = None if at is None else at.strftime(TIMESTAMP_FORMAT)
        in_force = (
            it for it in self.secrets if moment is None or it.until is None or moment < it.until
        )
        return [it.value for it in in_force]

    def concerns(self, conversation_id: str) -> bool:
        """Tell whether events of a conversation are posted."""
        return self.ended is None and self.conversation_id in (None, conversation_id)


def new_webhook_id() -> str:
    return secrets.token_hex(8)


def parse_webhooks(found: Iterable[UserSecret]) -> tuple[Webhook, ...]:
    """Parse the webhooks among what a vault has; what cannot be decrypted is left out."""
    parsed = (_parse(it) for it in found if is_webhook(it.name))
    return tuple(webhook for webhook in parsed if webhook is not None)


class WebhookVault(Vault):
    """The webhooks of one user."""

    async def list_webhooks(self) -> list[Webhook]:
        """List the webhooks, the oldest first. Raises StoreError."""
        found = await self._read_all(is_webhook)
        parsed = parse_webhooks(self._open(name, stored) for name, stored in found.items())
        return sorted(parsed, key=lambda webhook: (webhook.created, webhook.id))

    async def get_webhook(self, webhook_id: str) -> Webhook:
        """Read a webhook. Raises NotFound, Invalid without its key, StoreError."""
        folder = _folder(webhook_id)
        found = await self._read_all(folder.__eq__)
        if folder not in found:
            raise _absent(webhook_id)
        opened = self._open(folder, found[folder])
        if (webhook := _parse(opened)) is None:
            raise Invalid(opened.fault.replace("The secret @webhooks/", "The webhook "))
        return webhook

    async def add_webhook(self, webhook: Webhook) -> None:
        """Keep a new webhook. Raises Invalid, Conflict, StoreError."""
        self._require_ring()
        if len(await self.list_webhooks()) >= MAX_WEBHOOKS:
            raise Conflict(f"A user has {MAX_WEBHOOKS} webhooks at most.", "Delete one first.")
        await self.put_webhook(webhook)

    async def put_webhook(self, webhook: Webhook) -> None:
        """Keep a webhook, in place of the one with its id. Raises Invalid, StoreError."""
        ring, folder = self._require_ring(), _folder(webhook.id)
        await self._add_version(folder, self._seal(ring, folder, webhook.model_dump_json(), ""))

    async def rotate(self, webhook_id: str, value: str) -> Webhook:
        """Sign with a new secret, and for a day with that of before. Raises NotFound."""
        webhook = await self.get_webhook(webhook_id)
        until = (datetime.now(UTC) + OVERLAP).strftime(TIMESTAMP_FORMAT)
        before = webhook.secrets[0].model_copy(update={"until": until})
        rotated = webhook.model_copy(update={"secrets": (SigningSecret(value=value), before)})
        await self.put_webhook(rotated)
        return rotated

    async def end_webhook(self, webhook_id: str, reason: str) -> None:
        """Post nothing any more, for a reason. Raises NotFound, StoreError."""
        webhook = await self.get_webhook(webhook_id)
        await self.put_webhook(webhook.model_copy(update={"ended": reason}))

    async def remove_webhook(self, webhook_id: str) -> None:
        """Remove a webhook, of which nothing stays. Raises NotFound, StoreError."""
        folder = _folder(webhook_id)
        versions = [it for it in await self._list_versions() if it.name == folder]
        if not versions:
            raise _absent(webhook_id)
        for version in versions:
            await self._store.delete(self._key(version))


def _folder(webhook_id: str) -> str:
    """Return the folder of a webhook. Raises NotFound for what is no id of one."""
    try:
        return webhook_folder(webhook_id)
    except ValueError as error:
        raise _absent(webhook_id) from error


def _absent(webhook_id: str) -> NotFound:
    return NotFound(f"There is no webhook {webhook_id!r}.", "`perdure webhook ls` lists them.")


def _parse(found: UserSecret) -> Webhook | None:
    """Parse a webhook; None if it cannot be decrypted or parsed."""
    if found.value is None:
        return None
    try:
        webhook = Webhook.model_validate_json(found.value)
    except ValidationError:
        return None
    return webhook if found.name == f"{WEBHOOKS}{webhook.id}" else None
