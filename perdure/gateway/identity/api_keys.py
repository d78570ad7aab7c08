"""API keys as a gateway checks them: cached for some seconds, so that a revocation is seen soon."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from time import monotonic

from perdure.gateway.identity.principal import Principal
from perdure.storage.cache import Cache
from perdure.storage.credentials.api_keys import API_KEY, ApiKey, read_api_key, save_use
from perdure.storage.errors import StoreError
from perdure.storage.store import Store

logger = logging.getLogger("perdure.gateway")

MAX_AGE = 5.0
"""Seconds for which a key is cached: a revoked one works for so long at most."""

USE_INTERVAL = timedelta(minutes=1)
"""The time between two writes of the last use of a key."""

MAX_KEYS = 10_000


class ApiKeys:
    """The API keys of a store, also ids that are no key's."""

    def __init__(self, store: Store, clock: Callable[[], float] = monotonic) -> None:
        self._store = store
        self._clock = clock
        self._cache: Cache[str, tuple[float, ApiKey | None]] = Cache(MAX_KEYS)
        self._used: Cache[str, datetime] = Cache(MAX_KEYS)

    async def authenticate(self, text: str) -> Principal | None:
        """Return whose key it is; None if it is none. Raises StoreError."""
        parts = API_KEY.fullmatch(text)
        key = await self._load(parts[1]) if parts else None
        if key is None or not key.matches(text):
            return None
        await self._note_use(key.id)
        return Principal(key.user_id, frozenset(key.scopes), "key", key_id=key.id)

    def is_known(self, text: str) -> bool:
        """Tell whether it is a key that has worked lately, without asking the store."""
        parts = API_KEY.fullmatch(text)
        cached = self._cache.get(parts[1]) if parts else None
        return cached is not None and cached[1] is not None and cached[1].matches(text)

    async def is_valid(self, key_id: str) -> bool:
        """Tell whether a key still works. Raises StoreError."""
        return await self._load(key_id) is not None

    def forget(self, key_id: str) -> None:
        """Drop a key that was revoked here."""
        self._cache.evict(key_id)

    async def _load(self, key_id: str) -> ApiKey | None:
        """Load a key that has not expired."""
        cached = self._cache.get(key_id)
        if cached is None or self._clock() - cached[0] >= MAX_AGE:
            asked = self._clock()
            cached = asked, await read_api_key(self._store, key_id)
            self._cache.put(key_id, cached)
        key = cached[1]
        return None if key is None or key.has_expired(datetime.now(UTC)) else key

    async def _note_use(self, key_id: str) -> None:
        now, used = datetime.now(UTC), self._used.get(key_id)
        if used is not None and now - used < USE_INTERVAL:
            return
        self._used.put(key_id, now)
        try:
            await save_use(self._store, key_id, now)
        except StoreError as error:  # it is a note for people
            logger.warning("The use of the key %s was not noted: %s", key_id, error)
