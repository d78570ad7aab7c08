"""All ways by which a gateway knows its callers."""

from datetime import UTC, datetime

from perdure.gateway.identity.api_keys import ApiKeys
from perdure.gateway.identity.issuer import Issuer
from perdure.gateway.identity.principal import Principal
from perdure.gateway.identity.sessions import Sessions
from perdure.settings.settings import Settings
from perdure.storage.store import Store

KEY_START = "pk_"


class Identities:
    """API keys, tokens of an issuer where one is set, sessions of browsers and tickets.

    Raises SettingsError for an issuer that cannot be used.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self.keys = ApiKeys(store)
        self.sessions = Sessions(store)
        self._issuer = Issuer(settings) if settings.gateway_issuer is not None else None

    async def authenticate(self, text: str) -> Principal | None:
        """Return whose key or token it is. Raises StoreError, Unreachable."""
        if text.startswith(KEY_START):
            return await self.keys.authenticate(text)
        return await self._issuer.authenticate(text) if self._issuer is not None else None

    async def authenticate_session(self, text: str) -> Principal | None:
        """Return whose session it is: it lasts no longer than the key it began with."""
        principal = await self.sessions.authenticate(text)
        return principal if principal is not None and await self.is_valid(principal) else None

    def can_check_alone(self, text: str) -> bool:
        """Tell whether the store need not be asked about a secret for the first time.

        A token of an issuer is checked by its signature; keys and sessions that have worked lately
        are known.
        """
        if self._issuer is not None and text.count(".") == 2:
            return True
        return self.keys.is_known(text) or self.sessions.is_known(text)

    async def is_valid(self, principal: Principal) -> bool:
        """Tell whether a principal may still do what it may: asked while a connection lasts.

        Raises StoreError.
        """
        if principal.expires is not None and datetime.now(UTC) >= principal.expires:
            return False
        if principal.key_id is not None and not await self.keys.is_valid(principal.key_id):
            return False
        return principal.session is None or await self.sessions.is_valid(principal.session)
