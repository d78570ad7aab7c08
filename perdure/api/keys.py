"""The requests and responses about API keys and who one is."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from perdure.events.base import Frozen, Tolerant

Scope: TypeAlias = Literal["read", "write", "admin"]


class CreateKey(Frozen):
    """`POST /v1/keys`: make a key of the same user, with no scope that the request has not."""

    name: Annotated[str, Field(min_length=1, max_length=128)]
    scopes: tuple[Scope, ...] = ("read", "write")
    expires_in: Annotated[int, Field(strict=True, gt=0, le=10 * 366 * 86_400)] | None = None
    """Seconds; None never expires."""


class Key(Tolerant):
    """A key without its secret; times are UTC."""

    id: str
    user_id: str
    name: str
    scopes: tuple[Scope, ...]
    created: str
    expires: str | None = None
    last_used: str | None = None
    revoked: bool = False


class CreatedKey(Tolerant):
    """A new key; `secret` is shown this once."""

    key: Key
    secret: str


class Keys(Tolerant):
    """The keys of a user, the oldest first."""

    items: tuple[Key, ...]


class LogIn(Frozen):
    """`POST /v1/login`: begin a session of a browser, by a one-time code or by an API key.

    The address with which `perdure dev` greets has the code behind `#login=`: no server sees it
    before the page sends it here.
    """

    code: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    key: Annotated[str, Field(min_length=1, max_length=255)] | None = None


class Ticket(Tolerant):
    """`POST /v1/tickets`: a secret that opens one socket, as `?ticket=`."""

    ticket: str
    expires_in: int
    """Seconds."""


class Me(Tolerant):
    """The user of a request, and its scopes."""

    user_id: str
    scopes: tuple[Scope, ...]
    key_id: str | None = None
    """The API key of the request; None for a token or a session."""
