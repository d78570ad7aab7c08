"""The sessions of browsers, and what leads to one: a key, or a one-time login.

A session is an object of the store, so that every gateway knows it and a logout ends it everywhere.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from time import monotonic

from perdure.gateway.identity.principal import Principal
from perdure.storage.cache import Cache
from perdure.storage.credentials.tokens import (
    Token,
    create_token,
    read_token,
    token_key,
    use_token,
)
from perdure.storage.store import Store

SESSION_LIFETIME = timedelta(days=14)
TICKET_LIFETIME = timedelta(seconds=30)

MAX_AGE = 5.0
"""Seconds for which a session is cached: one that has ended elsewhere works for so long at most."""

MAX_SESSIONS = 10_000


class Sessions:
    """The sessions and tickets on a store."""

    def __init__(self, store: Store, clock: Callable[[], float] = monotonic) -> None:
        self._store = store
        self._clock = clock
        self._cache: Cache[str, tuple[float, Token | None]] = Cache(MAX_SESSIONS)

    async def begin(self, principal: Principal) -> str:
        """Begin a session of a user; return the secret of its cookie.

        The session lasts no longer than the token of an issuer that it begins with.
        """
        lifetime = SESSION_LIFETIME
        if principal.expires is not None:
            lifetime = min(lifetime, principal.expires - datetime.now(UTC))
        return await create_token(
            self._store,
            "session",
            principal.user_id,
            principal.scopes,
            lifetime,
            principal.key_id,
        )

    async def authenticate(self, text: str) -> Principal | None:
        """Return whose session it is; None if it is none. Raises StoreError."""
        key = token_key("session", text)
        token = await self._load(key) if key is not None else None
        if token is None:
            return None
        scopes = frozenset(token.scopes)
        return Principal(token.user_id, scopes, "browser", token.key_id, key, token.expires)

    def is_known(self, text: str) -> bool:
        """Tell whether it is a session that has worked lately, without asking the store."""
        key = token_key("session", text)
        cached = self._cache.get(key) if key is not None else None
        return cached is not None and cached[1] is not None

    async def is_valid(self, key: str) -> bool:
        """Tell whether the session under a key still lasts. Raises StoreError."""
        return await self._load(key) is not None

    async def end(self, key: str) -> None:
        """End the session under a key, for all gateways."""
        await self._store.delete(key)
        self._cache.put(key, (self._clock(), None))

    async def make_ticket(self, principal: Principal) -> str:
        """Make a ticket, by which a socket is authenticated once, and as long as its maker is."""
        return await create_token(
            self._store,
            "ticket",
            principal.user_id,
            principal.scopes,
            TICKET_LIFETIME,
            principal.key_id,
            principal.session,
            principal.expires,
        )

    async def use_ticket(self, text: str) -> Principal | None:
        """Return who made a ticket; None if it is none, has expired or was used."""
        token = await use_token(self._store, "ticket", text)
        if token is None:
            return None
        scopes = frozenset(token.scopes)
        return Principal(
            token.user_id, scopes, "ticket", token.key_id, token.session, token.maker_expires
        )

    async def use_login(self, text: str) -> Principal | None:
        """Return for whom a one-time login was made; None if it is none, or was used."""
        token = await use_token(self._store, "login", text)
        if token is None:
            return None
        return Principal(token.user_id, frozenset(token.scopes), "browser", token.key_id)

    async def _load(self, key: str) -> Token | None:
        cached = self._cache.get(key)
        if cached is None or self._clock() - cached[0] >= MAX_AGE:
            asked = self._clock()
            cached = asked, await read_token(self._store, key)
            self._cache.put(key, cached)
        return cached[1]
