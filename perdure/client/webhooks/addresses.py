"""The addresses of a user's conversations and schedules, which the store keeps."""

from dataclasses import dataclass
from typing import cast

from perdure.api.addresses import MAX_ADDRESSES, Address, CreateAddress, CreatedAddress
from perdure.client.client import Client
from perdure.client.http.client import HttpClient
from perdure.client.schedules.schedules import Schedules
from perdure.client.webhooks.protocol import absent_address
from perdure.errors import Conflict, Invalid, NotFound
from perdure.storage.credentials.addresses import (
    StoredAddress,
    create_address,
    delete_address,
    list_addresses,
)
from perdure.storage.store import Store
from perdure.webhooks.signing import find_secret_error, new_secret

POSTS_PATH = "/v1/posts"


@dataclass(frozen=True)
class Addresses:
    """The addresses of one user's conversations and schedules: what is posted there arrives."""

    client: Client

    @classmethod
    def from_client(cls, client: Client) -> "Addresses":
        """Return the addresses of a client's user; those of a gateway's are `HttpAddresses`."""
        if isinstance(client, HttpClient):
            from perdure.client.webhooks.http_webhooks import HttpAddresses

            return cast("Addresses", HttpAddresses(client))
        return cls(client)

    async def create(self, definition: CreateAddress) -> CreatedAddress:
        """Create an address of a conversation or a schedule of one's own.

        Whoever knows its path may post, if posts are signed with the secret as well. Raises
        NotFound, Conflict for too many addresses, Invalid, StoreError.
        """
        signing_secret = _choose_secret(definition)
        await self._require(definition)
        if len(await self.list_addresses()) >= MAX_ADDRESSES:
            raise Conflict(f"A user has {MAX_ADDRESSES} addresses at most.", "Revoke one first.")
        user_id = self.client.user_id
        made, secret = await create_address(self._store, user_id, definition, signing_secret)
        fields = _describe(made).model_dump()
        path = f"{POSTS_PATH}/{made.id}/{secret}"
        return CreatedAddress(**fields, path=path, secret=signing_secret)

    async def _require(self, definition: CreateAddress) -> None:
        """Raise NotFound unless the conversation, or the schedule, is there."""
        if definition.schedule is not None:
            await Schedules(self.client).get(definition.schedule)
            return
        conversation_id = definition.conversation_id or ""
        if not await self.client.conversation(conversation_id).exists():
            raise NotFound.for_conversation(conversation_id)

    async def list_addresses(self) -> list[Address]:
        """List the addresses, the oldest first. Raises StoreError."""
        found = await list_addresses(self._store, self.client.user_id)
        return [_describe(address) for address in found]

    async def revoke(self, address_id: str) -> None:
        """Revoke an address: nothing that is posted there arrives. Raises NotFound, StoreError."""
        try:
            was_there = await delete_address(self._store, self.client.user_id, address_id)
        except ValueError:
            was_there = False
        if not was_there:
            raise absent_address(address_id)

    @property
    def _store(self) -> Store:
        return self.client.store


def _describe(address: StoredAddress) -> Address:
    return Address(**address.model_dump(include=set(Address.model_fields)))


def _choose_secret(definition: CreateAddress) -> str | None:
    """Return the secret by which posts are signed; None if they need no signature.

    Raises Invalid for a sender's that is none.
    """
    if definition.secret is not None:
        if problem := find_secret_error(definition.secret):
            raise Invalid(problem, "Leave the secret out, and one is made.")
        return definition.secret
    return new_secret() if definition.signed else None
