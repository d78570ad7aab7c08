"""Secrets that work for a while: sessions of browsers, tickets of sockets, one-time logins.

The store has each under its SHA-256, so that every gateway knows them, and who reads the store can
use none. The time when it expires is a part of the secret and of its key: what has expired is found
by listing.
"""

import re
import secrets
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias, get_args

from pydantic import ValidationError

from perdure.api.keys import Scope
from perdure.events.base import Frozen
from perdure.storage.credentials.api_keys import hash_secret
from perdure.storage.errors import Altered
from perdure.storage.keys import TOKENS, check_user_id
from perdure.storage.store import Store, list_keys

TokenKind: TypeAlias = Literal["session", "ticket", "login"]

TOKEN = re.compile(r"([0-9]{10})\.[A-Za-z0-9_-]{43}")

USED = ".used"

CLOCK_TOLERANCE = timedelta(hours=1)
"""The time after which nothing of an expired token is needed, whatever clocks say."""


class Token(Frozen):
    """The user and the scopes of a token. `key_id` is the API key that it was made with."""

    user_id: str
    scopes: tuple[Scope, ...]
    expires: datetime
    key_id: str | None = None
    session: str | None = None
    """The key of the session that a ticket was made in."""
    maker_expires: datetime | None = None
    """The end of the credential that a ticket was made with."""


async def create_token(
    store: Store,
    kind: TokenKind,
    user_id: str,
    scopes: Collection[Scope],
    lifetime: timedelta,
    key_id: str | None = None,
    session: str | None = None,
    maker_expires: datetime | None = None,
) -> str:
    """Create a token, and return its secret. Raises ValueError for an invalid user id."""
    expires = (datetime.now(UTC) + lifetime).replace(microsecond=0)
    text = f"{int(expires.timestamp()):010d}.{secrets.token_urlsafe(32)}"
    token = Token(
        user_id=check_user_id(user_id),
        scopes=tuple(sorted(scopes)),
        expires=expires,
        key_id=key_id,
        session=session,
        maker_expires=maker_expires,
    )
    key = token_key(kind, text)
    assert key is not None, "a new token has the form of one"
    await store.create(key, token.model_dump_json().encode())
    return text


def token_key(kind: TokenKind, text: str) -> str | None:
    """Return the key of a token; None for what is none."""
    parts = TOKEN.fullmatch(text)
    return f"{TOKENS}{kind}/{parts[1]}-{hash_secret(text)}.json" if parts else None


async def read_token(store: Store, key: str) -> Token | None:
    """Read the token under a key; None if there is none, or it has expired. Raises Altered."""
    body = await store.read(key)
    if body is None:
        return None
    try:
        token = Token.model_validate_json(body)
    except ValidationError as error:
        raise Altered(key) from error
    return token if datetime.now(UTC) < token.expires else None


async def use_token(store: Store, kind: TokenKind, text: str) -> Token | None:
    """Use a token up, and return whose it was; None if it is none, has expired or was used."""
    key = token_key(kind, text)
    token = await read_token(store, key) if key is not None else None
    if key is None or token is None:
        return None
    mark, mine = key.removesuffix(".json") + USED, secrets.token_bytes(16)
    # A store may call its own write taken, where the answer was lost.
    if not await store.create(mark, mine) and await store.read(mark) != mine:
        return None
    await store.delete(key)
    return token


async def delete_expired_tokens(store: Store, now: datetime) -> int:
    """Delete what is left of tokens that have expired long ago; return how many objects."""
    before, count = int((now - CLOCK_TOLERANCE).timestamp()), 0
    for kind in get_args(TokenKind):
        prefix = f"{TOKENS}{kind}/"
        expired: list[str] = []
        async for key in list_keys(store, prefix):
            seconds = key.removeprefix(prefix)[:10]
            if seconds.isdecimal() and int(seconds) >= before:
                break
            expired.append(key)
        for key in expired:
            await store.delete(key)
        count += len(expired)
    return count
