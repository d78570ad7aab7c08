"""API keys on the store: `pk_{id}_{secret}`, of which the store has the SHA-256.

A secret of 256 random bits needs no slow hash. What changes of a key is in objects of its own, so
that no writer can undo a revocation.
"""

import asyncio
import hashlib
import hmac
import re
import secrets
from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from pydantic import ValidationError

from perdure.api.keys import CreatedKey, Key, Scope
from perdure.events.base import Frozen
from perdure.storage.errors import Altered
from perdure.storage.keys import api_key_prefix, check_user_id, user_keys_prefix
from perdure.storage.store import Store, list_keys

API_KEY = re.compile(r"pk_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
"""An API key, with its id and its secret."""

PARALLEL_READS = 16

RECORD = "key.json"
USED = "used.json"
REVOKED = "revoked"


class ApiKey(Frozen):
    """An API key as the store has it; times are UTC."""

    id: str
    user_id: str
    name: str
    scopes: tuple[Scope, ...]
    sha256: str
    """The SHA-256 of the whole key, in hex."""
    created: datetime
    expires: datetime | None = None

    def matches(self, text: str) -> bool:
        """Tell whether `text` is the key, in a time that does not depend on it."""
        return hmac.compare_digest(self.sha256, hash_secret(text))

    def has_expired(self, now: datetime) -> bool:
        return self.expires is not None and now >= self.expires


class Use(Frozen):
    """The last use of a key."""

    at: datetime


def hash_secret(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def create_api_key(
    store: Store,
    user_id: str,
    name: str,
    scopes: Collection[Scope] = ("read", "write"),
    expires_in: float | None = None,
) -> CreatedKey:
    """Create a key; None for `expires_in`, in seconds, never expires.

    Raises ValueError for an invalid user id, and the errors of the store.
    """
    key_id = secrets.token_hex(8)
    secret = f"pk_{key_id}_{secrets.token_urlsafe(32)}"
    now = datetime.now(UTC)
    key = ApiKey(
        id=key_id,
        user_id=check_user_id(user_id),
        name=name,
        scopes=tuple(dict.fromkeys(scopes)),
        sha256=hash_secret(secret),
        created=now,
        expires=None if expires_in is None else now + timedelta(seconds=expires_in),
    )
    await store.create(f"{user_keys_prefix(user_id)}{key_id}", b"")
    await store.create(api_key_prefix(key_id) + RECORD, key.model_dump_json().encode())
    return CreatedKey(key=_describe(key), secret=secret)


async def read_api_key(store: Store, key_id: str) -> ApiKey | None:
    """Read a key; None if there is none, or it is revoked. Raises Altered."""
    prefix = api_key_prefix(key_id)
    body, revoked = await asyncio.gather(store.read(prefix + RECORD), store.read(prefix + REVOKED))
    return None if body is None or revoked is not None else _parse(prefix + RECORD, body)


async def revoke_api_key(store: Store, key_id: str) -> None:
    """Revoke a key for good. Raises ValueError for what is no id of a key."""
    await store.create(api_key_prefix(key_id) + REVOKED, b"")


async def save_use(store: Store, key_id: str, at: datetime) -> None:
    await store.replace(api_key_prefix(key_id) + USED, Use(at=at).model_dump_json().encode())


async def find_api_key(store: Store, user_id: str, key_id: str) -> Key | None:
    """Describe a key of the user's, also a revoked one; None if he has no such key."""
    try:
        prefix = api_key_prefix(key_id)
    except ValueError:
        return None
    body, used, revoked = await asyncio.gather(
        *(store.read(prefix + name) for name in (RECORD, USED, REVOKED))
    )
    if body is None:
        return None
    key = _parse(prefix + RECORD, body)
    if key.user_id != user_id:
        return None
    return _describe(key, used, revoked is not None)


async def list_api_keys(store: Store, user_id: str) -> list[Key]:
    """List the keys of a user, the oldest first."""
    prefix = user_keys_prefix(user_id)
    ids = [key.removeprefix(prefix) async for key in list_keys(store, prefix)]
    turns = asyncio.Semaphore(PARALLEL_READS)

    async def find(key_id: str) -> Key | None:
        async with turns:
            return await find_api_key(store, user_id, key_id)

    found = await asyncio.gather(*map(find, ids))
    return sorted(filter(None, found), key=lambda key: (key.created, key.id))


def _parse(key: str, body: bytes) -> ApiKey:
    try:
        return ApiKey.model_validate_json(body)
    except ValidationError as error:
        raise Altered(key) from error


def _describe(key: ApiKey, used: bytes | None = None, revoked: bool = False) -> Key:
    return Key(
        id=key.id,
        user_id=key.user_id,
        name=key.name,
        scopes=key.scopes,
        created=_format(key.created),
        expires=_format(key.expires) if key.expires else None,
        last_used=_format(Use.model_validate_json(used).at) if used else None,
        revoked=revoked,
    )


def _format(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")
