"""Tokens of an issuer (OpenID Connect): JSON Web Tokens, checked by the issuer's public keys.

Sources: RFC 7519, RFC 8725 (best current practices), OpenID Connect Discovery 1.0.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http.client import HTTPException
from time import monotonic
from typing import Any
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import jwt

from perdure.api.keys import Scope
from perdure.errors import Unreachable
from perdure.gateway.identity.principal import Principal
from perdure.settings.errors import SettingsError
from perdure.settings.settings import Settings
from perdure.storage.keys import check_user_id

logger = logging.getLogger("perdure.gateway")

KEYS_MAX_AGE = 600.0
"""Seconds after which the keys of the issuer are fetched again."""

MIN_FETCH_INTERVAL = 60.0
"""Seconds between two fetches for the sake of a key that is not known."""

FETCH_TIMEOUT = 5.0
MAX_DOCUMENT_BYTES = 1024 * 1024

LEEWAY = 10
"""Seconds by which the clocks of issuer and gateway may differ."""

SCOPE_PREFIX = "perdure:"
SCOPES: tuple[Scope, ...] = ("read", "write", "admin")

LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Issuer:
    """The issuer of the settings. Raises SettingsError for one that cannot be used."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = monotonic) -> None:
        if settings.gateway_issuer is None or not settings.gateway_audience:
            raise SettingsError("An issuer of tokens needs gateway_issuer and gateway_audience.")
        self._settings = settings
        self._clock = clock
        self._keys: list[Mapping[str, Any]] = []
        self._fetched: float | None = None
        self._fetching = asyncio.Lock()
        for url in filter(None, (settings.gateway_issuer, settings.gateway_jwks)):
            _check_address(url)

    async def authenticate(self, text: str) -> Principal | None:
        """Return whose token it is; None if it is none of the issuer for us.

        Raises Unreachable if the issuer's keys cannot be fetched.
        """
        try:
            header = jwt.get_unverified_header(text)
            algorithm = str(header.get("alg"))
            if algorithm not in self._settings.gateway_algorithms:
                return None
            key = await self._find_key(header.get("kid"), algorithm)
            if key is None:
                return None
            claims = jwt.decode(
                text,
                key,
                algorithms=[algorithm],
                audience=self._settings.gateway_audience,
                issuer=self._settings.gateway_issuer,
                leeway=LEEWAY,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.PyJWTError:
            return None
        return self._read_claims(claims)

    def _read_claims(self, claims: Mapping[str, Any]) -> Principal | None:
        user_id = claims.get(self._settings.gateway_user_claim)
        try:
            check_user_id(user_id if isinstance(user_id, str) else "")
        except ValueError:
            logger.warning("A token of the issuer names no user id that perdure takes.")
            return None
        words = claims.get(self._settings.gateway_scope_claim)
        words = words.split() if isinstance(words, str) else words
        given = {word for word in words if isinstance(word, str)} if isinstance(words, list) else ()
        scopes = frozenset(scope for scope in SCOPES if f"{SCOPE_PREFIX}{scope}" in given)
        expires = datetime.fromtimestamp(float(claims["exp"]), UTC)
        return Principal(str(user_id), scopes, "token", expires=expires)

    async def _find_key(self, kid: Any, algorithm: str) -> jwt.PyJWK | None:
        """Find the key of a token, fetched anew where it is not known. Raises Unreachable."""
        async with self._fetching:
            age = self._age()
            if age is None or age >= KEYS_MAX_AGE:
                await self._fetch()
            found = self._select(kid, algorithm)
            if found is None and (self._age() or 0) >= MIN_FETCH_INTERVAL:
                await self._fetch()
                found = self._select(kid, algorithm)
        return found

    def _age(self) -> float | None:
        return None if self._fetched is None else self._clock() - self._fetched

    def _select(self, kid: Any, algorithm: str) -> jwt.PyJWK | None:
        keys = [key for key in self._keys if key.get("use", "sig") == "sig"]
        if kid is not None:
            keys = [key for key in keys if key.get("kid") == kid]
        keys = [key for key in keys if key.get("alg", algorithm) == algorithm]
        if len(keys) != 1:
            return None
        return jwt.PyJWK(dict(keys[0]), algorithm)

    async def _fetch(self) -> None:
        """Fetch the keys; those of before stay where the issuer does not answer."""
        try:
            self._keys = await asyncio.to_thread(self._load_keys)
            self._fetched = self._clock()
        except (OSError, HTTPException, ValueError, LookupError, TypeError) as error:
            logger.warning("The keys of the issuer cannot be fetched: %s", error)
            if self._fetched is None:
                raise Unreachable("The issuer of tokens does not show its keys.") from error
            self._fetched = self._clock() - KEYS_MAX_AGE + MIN_FETCH_INTERVAL

    def _load_keys(self) -> list[Mapping[str, Any]]:
        """Load the keys. Raises OSError, HTTPException, ValueError, LookupError and TypeError."""
        url = self._settings.gateway_jwks
        if url is None:
            issuer = (self._settings.gateway_issuer or "").rstrip("/")
            url = str(_load_json(f"{issuer}/.well-known/openid-configuration")["jwks_uri"])
            _check_address(url)
        keys = _load_json(url)["keys"]
        return [key for key in keys if isinstance(key, dict)]


class _NoRedirects(HTTPRedirectHandler):
    """Follows no redirect: the address of keys is what an operator has set."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _load_json(url: str) -> Mapping[str, Any]:
    opener = build_opener(_NoRedirects)
    request = Request(url, headers={"Accept": "application/json"})
    with opener.open(request, timeout=FETCH_TIMEOUT) as response:
        body = response.read(MAX_DOCUMENT_BYTES + 1)
    if len(body) > MAX_DOCUMENT_BYTES:
        raise ValueError("the document is too long")
    document = json.loads(body)
    if not isinstance(document, dict):
        raise ValueError("the document is no object")
    return document


def _check_address(url: str) -> None:
    """Raises SettingsError unless nobody on the way can change what is read from an address."""
    parts = urlsplit(url)
    if "@" in parts.netloc:  # nobody would send them, and errors would name them
        raise SettingsError("The address of an issuer has no user name and no password.")
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK):
        return
    raise SettingsError(f"{url!r} is no https address: the keys of an issuer need one.")
