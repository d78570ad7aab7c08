"""The secrets of one user on a worker: those that the user has handed in, over the worker's own.

What one user has handed in is masked in that user's conversations alone: where another's words were
masked by it, they would tell that it is somebody's secret.
"""

import asyncio
import time
from collections.abc import Mapping

from perdure.secrets.masker import Patterns
from perdure.secrets.registry import Secrets, SecretUnavailable
from perdure.secrets.vault import UserSecret, Vault, is_webhook
from perdure.secrets.webhooks import SIGNING, Webhook, parse_webhooks
from perdure.storage.cache import Cache
from perdure.storage.credentials.key_ring import KeyRing
from perdure.storage.store import Store

RELOAD_INTERVAL = 5.0
"""Seconds after which the values for masking are read again; a command reads its own at once."""

MAX_CACHED_USERS = 256
"""Users whose secrets are in memory."""


class LayeredSecrets(Secrets):
    """The secrets of a worker, and further values that are masked besides."""

    def __init__(self, base: Secrets) -> None:
        super().__init__(environment={})
        self._base = base
        self._combined = (Patterns({}), -1, Patterns({}))

    def learn(self, values: Mapping[str, str]) -> None:
        """Mask these values from now on; each has the name that stands in its place."""
        self._learn(values)

    def value(self, name: str) -> str:
        return self._base.value(name)

    def has_values(self) -> bool:
        return bool(self._names) or self._base.has_values()

    def patterns(self) -> Patterns:
        """Return the patterns of all values, former ones included."""
        base, count, combined = self._base.patterns(), len(self._names), self._combined
        if combined[0] is not base or combined[1] != count:
            # The first name of a value wins: that of the user, before that of the worker.
            both = {**self._names, **self._base.known_values(), **self._names}
            self._combined = combined = (base, count, Patterns(both))
        return combined[2]

    def known_values(self) -> dict[str, str]:
        return {**self._base.known_values(), **self._names}


class UserSecrets(LayeredSecrets):
    """The secrets of one user, which come before those of the worker with the same name.

    `load` reads them from the store; `everyone` learns them too. Old values stay masked.
    """

    def __init__(self, base: Secrets, vault: Vault, everyone: LayeredSecrets) -> None:
        super().__init__(base)
        self._vault = vault
        self._everyone = everyone
        self._found: Mapping[str, UserSecret] = {}
        self.webhooks: tuple[Webhook, ...] = ()
        """The webhooks of the user, as far as they can be decrypted here."""
        self._loaded_at: float | None = None
        self._loading = asyncio.Lock()

    async def load(self, max_age: float = 0.0) -> None:
        """Read the secrets of the user, unless they were read within `max_age` seconds.

        Raises StoreError; what was read before counts still.
        """
        asked_at = time.monotonic()
        async with self._loading:
            if self._loaded_at is not None and self._loaded_at >= asked_at - max_age:
                return
            began = time.monotonic()
            loaded = await self._vault.load()
            self.webhooks = parse_webhooks(loaded)
            found = {it.name: it for it in loaded if not is_webhook(it.name)}
            values = {it.value: it.name for it in found.values() if it.value is not None}
            values |= {value: SIGNING for it in self.webhooks for value in it.secret_values()}
            self.learn(values)
            self._everyone.learn(values)
            self._found, self._loaded_at = found, began

    @property
    def is_loaded(self) -> bool:
        """Tell whether the secrets were read at all."""
        return self._loaded_at is not None

    def descriptions(self) -> dict[str, str]:
        """Return the descriptions of the user's secrets by name."""
        return {name: it.description for name, it in self._found.items() if it.description}

    def value(self, name: str) -> str:
        """Return the user's value of a secret, else the worker's. Raises SecretUnavailable."""
        secret = self._found.get(name)
        if secret is None:
            return self._base.value(name)
        if secret.value is None:
            self._warn(secret.fault)
            raise SecretUnavailable(secret.fault)
        return secret.value


class SecretsByUser:
    """The secrets of the users whose conversations a worker has.

    `everyone` masks the values of all of them, for what no user sees: the worker's own log.
    """

    def __init__(self, base: Secrets, store: Store, ring: KeyRing | None) -> None:
        self.everyone = LayeredSecrets(base)
        self.has_keys = ring is not None
        self._base = base
        self._store = store
        self._ring = ring
        self._users: Cache[str, UserSecrets] = Cache(MAX_CACHED_USERS)

    def of(self, user_id: str) -> UserSecrets:
        """Return the secrets of a user. Raises ValueError for an invalid user id."""
        if (secrets := self._users.get(user_id)) is None:
            vault = Vault(self._store, user_id, self._ring)
            secrets = UserSecrets(self._base, vault, self.everyone)
            self._users.put(user_id, secrets)
        return secrets
