"""The routes of models past litellm, and what leads to litellm whatever the server."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from perdure.models.capabilities import Capabilities

Json: TypeAlias = Mapping[str, Any]

LITELLM_VARIABLES = (
    "AIOHTTP_TRUST_ENV",
    "DISABLE_AIOHTTP_TRUST_ENV",
    "LITELLM_HTTP2",
    "LITELLM_USER_AGENT",
    "SSL_ECDH_CURVE",
    "SSL_SECURITY_LEVEL",
    "USE_LITELLM_PROXY",
)
"""Variables that litellm obeys, and that are not known here: where one is set, it is called."""


@dataclass(frozen=True)
class Route:
    """The route of a model past litellm."""

    url: str
    model: str
    listed: Json
    """The model's entry in litellm's list; empty for most self-hosted models."""
    capabilities: Capabilities


def is_set(variables: Mapping[str, str], *names: str) -> bool:
    """Tell whether one of the variables is set, and not empty."""
    return any(variables.get(name) for name in names)


def is_plain_address(address: str) -> bool:
    """Tell whether an address has neither a user nor a query, which litellm treats in its way."""
    parts = urlsplit(address)
    return bool(parts.hostname) and not (parts.username or parts.query or parts.fragment)
