"""Addresses to which others post: the store has the SHA-256 of the secret in their path.

An address is written once, and revoked by deleting it: no writer can undo that. The secret by which
its posts are signed is encrypted with the one in the path, which comes with each post: neither who
reads the store nor who sees a path can sign.
"""

import asyncio
import base64
import hmac
import secrets
from datetime import UTC, datetime
from typing import NamedTuple

from pydantic import ValidationError

from perdure.api.addresses import Address, CreateAddress
from perdure.events.base import TIMESTAMP_FORMAT
from perdure.storage.credentials.api_keys import hash_secret
from perdure.storage.credentials.key_ring import KeyRing, Undecryptable
from perdure.storage.errors import Altered
from perdure.storage.keys import address_key, user_address_key, user_addresses_prefix
from perdure.storage.store import Store, list_keys

PARALLEL_READS = 16

PATH_KEY = "path"
"""The id of the key that follows from the secret in a path."""


class StoredAddress(Address):
    """An address as the store has it."""

    user_id: str
    sha256: str
    sealed: str | None = None
    """The secret by which posts are signed, encrypted and in base64."""

    def matches(self, secret: str) -> bool:
        """Tell whether this is the secret of its path, in a time that does not depend on it."""
        return hmac.compare_digest(self.sha256, hash_secret(secret))

    def open_secret(self, secret: str) -> str | None:
        """Return the secret by which posts are signed, by that of the path; None without one.

        Raises Altered.
        """
        if self.sealed is None:
            return None
        try:
            data = base64.b64decode(self.sealed)
            return _build_ring(secret).decrypt(PATH_KEY, data, self.id.encode()).decode()
        except (Undecryptable, ValueError) as error:
            raise Altered(address_key(self.id)) from error


class NewAddress(NamedTuple):
    """An address with the secret of its path, which nothing returns again."""

    address: StoredAddress
    secret: str


async def create_address(
    store: Store, user_id: str, definition: CreateAddress, signing_secret: str | None
) -> NewAddress:
    """Create an address, whose posts are signed with a secret or with none.

    Raises ValueError for a bad user id, StoreError.
    """
    secret, address_id = secrets.token_urlsafe(32), secrets.token_hex(8)
    address = StoredAddress(
        id=address_id,
        **definition.model_dump(include={"conversation_id", "schedule", "signal"}),
        signed=signing_secret is not None,
        created=datetime.now(UTC).strftime(TIMESTAMP_FORMAT),
        user_id=user_id,
        sha256=hash_secret(secret),
        sealed=None if signing_secret is None else seal(signing_secret, secret, address_id),
    )
    await store.create(user_address_key(user_id, address.id), b"")
    await store.create(address_key(address.id), address.model_dump_json().encode())
    return NewAddress(address, secret)


async def read_address(store: Store, address_id: str) -> StoredAddress | None:
    """Read an address; None if there is none. Raises ValueError for a bad id, Altered."""
    key = address_key(address_id)
    body = await store.read(key)
    if body is None:
        return None
    try:
        return StoredAddress.model_validate_json(body)
    except ValidationError as error:
        raise Altered(key) from error


async def list_addresses(store: Store, user_id: str) -> list[StoredAddress]:
    """List the addresses of a user, the oldest first."""
    prefix = user_addresses_prefix(user_id)
    ids = [key.removeprefix(prefix) async for key in list_keys(store, prefix)]
    turns = asyncio.Semaphore(PARALLEL_READS)

    async def read(address_id: str) -> StoredAddress | None:
        async with turns:
            return await read_address(store, address_id)

    found = [it for it in await asyncio.gather(*map(read, ids)) if it and it.user_id == user_id]
    return sorted(found, key=lambda address: (address.created, address.id))


async def delete_address(store: Store, user_id: str, address_id: str) -> bool:
    """Delete an address of a user's; return whether there was one. Raises ValueError."""
    address = await read_address(store, address_id)
    if address is None or address.user_id != user_id:
        return False
    await store.delete(address_key(address_id))
    await store.delete(user_address_key(user_id, address_id))
    return True


def seal(signing_secret: str, secret: str, address_id: str) -> str:
    """Encrypt a secret by which posts are signed with the one of the path of their address."""
    sealed = _build_ring(secret).encrypt(signing_secret.encode(), address_id.encode())
    return base64.b64encode(sealed).decode()


def _build_ring(secret: str) -> KeyRing:
    """Build the key that follows from 256 random bits, and not from their hash on the store."""
    return KeyRing({PATH_KEY: hmac.digest(secret.encode(), b"perdure/address", "sha256")})
