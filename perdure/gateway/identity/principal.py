"""The user of a request, and its scopes."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from perdure.api.keys import Scope


@dataclass(frozen=True)
class Principal:
    """The user of a request, and what the credential of the request allows.

    `key_id` and `session` name what has to be valid as long as a connection lasts: an API key, and
    the key of a browser's session on the store. `expires` is the end of a token of an issuer.
    """

    user_id: str
    scopes: frozenset[Scope]
    credential: Literal["key", "token", "browser", "ticket"]
    key_id: str | None = None
    session: str | None = None
    expires: datetime | None = None
