"""The caller of a route: who asks, and the client of that user."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias, cast

from fastapi import Depends, Path, Query
from starlette.requests import HTTPConnection

from perdure.api.keys import Scope
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.gateway.edge.audit import note_principal
from perdure.gateway.errors import Refused
from perdure.gateway.gateway import Gateway
from perdure.gateway.identity.principal import Principal
from perdure.gateway.identity.sites import SAFE_METHODS

CONVERSATION_PATTERN = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
SESSION_KEY_HEADER = "x-session-api-key"
"""The header in which clients of OpenHands send a key."""

USER_PATTERN = "^[A-Za-z0-9._@-]{1,128}$"

ConversationId: TypeAlias = Annotated[str, Path(pattern=CONVERSATION_PATTERN)]
UserId: TypeAlias = Annotated[str, Path(pattern=USER_PATTERN)]
Owner: TypeAlias = Annotated[
    str | None,
    Query(pattern=USER_PATTERN, description="Another user, who has shared it."),
]


@dataclass(frozen=True)
class Caller:
    """The principal of a request, and the client of that user."""

    gateway: Gateway
    principal: Principal
    client: Client


@dataclass(frozen=True)
class ConversationCall:
    """The conversation of the path, and who asks; whether it exists is not checked."""

    caller: Caller
    conversation: Conversation
    owner: str | None

    @property
    def gateway(self) -> Gateway:
        return self.caller.gateway

    @property
    def client(self) -> Client:
        return self.caller.client

    @property
    def id(self) -> str:
        return self.conversation.id


def find_gateway(connection: HTTPConnection) -> Gateway:
    return cast(Gateway, connection.app.state.gateway)


async def authenticate(connection: HTTPConnection) -> Principal:
    """Find out who asks: by `Authorization`, OpenHands' header, a ticket, or a session's cookie.

    Raises Refused.
    """
    gateway = find_gateway(connection)
    principal = await find_principal(gateway, connection)
    if principal is None:
        raise unauthorized()
    note_principal(connection, principal)
    if principal.credential == "browser":
        require_own_page(gateway, connection)
    return principal


async def find_principal(gateway: Gateway, connection: HTTPConnection) -> Principal | None:
    """Return who has sent a request; None without a valid credential. Raises StoreError."""
    header = connection.headers.get("authorization")
    if header is not None:
        scheme, _, text = header.partition(" ")
        if scheme.lower() != "bearer":
            return None
        return await check_secret(gateway, connection, text.strip())
    if (key := connection.headers.get(SESSION_KEY_HEADER)) is not None:
        return await check_secret(gateway, connection, key)
    if connection.scope["type"] == "websocket" and "ticket" in connection.query_params:
        return await check_secret(gateway, connection, connection.query_params["ticket"], "ticket")
    secret = connection.cookies.get(gateway.site.cookie_name(connection))
    return await check_secret(gateway, connection, secret, "session") if secret else None


async def check_secret(
    gateway: Gateway,
    connection: HTTPConnection,
    secret: str,
    kind: Literal["key", "session", "ticket", "login"] = "key",
) -> Principal | None:
    """Return whose a secret is; None if it is none.

    Raises Refused if many from the same address were none, unless this one worked lately: whoever
    guesses asks the store for no more than these.
    """
    identities, address = gateway.identities, connection.client.host if connection.client else ""
    if not identities.can_check_alone(secret):
        gateway.rates.require("failure", address)
    match kind:
        case "key":
            principal = await identities.authenticate(secret)
        case "session":
            principal = await identities.authenticate_session(secret)
        case "ticket":
            principal = await identities.sessions.use_ticket(secret)
        case "login":
            principal = await identities.sessions.use_login(secret)
    if principal is None:
        gateway.rates.count("failure", address)
    return principal


def require_own_page(gateway: Gateway, connection: HTTPConnection) -> None:
    """Raise Refused unless a page of ours has made a request that could do or show anything.

    A browser shows no page of another site the answer of a request that only reads.
    """
    if connection.scope["type"] == "websocket":
        is_own = gateway.site.has_own_origin(connection)
    else:
        is_safe = connection.scope["method"] in SAFE_METHODS
        is_own = is_safe or gateway.site.is_own_page(connection)
    if not is_own:
        raise Refused(403, "other_site", "A page of another site may not ask this with a session.")


def unauthorized() -> Refused:
    return Refused(
        401,
        "unauthorized",
        "The request has no valid key.",
        "Send `Authorization: Bearer KEY`; `perdure key create` makes a key.",
        {"WWW-Authenticate": "Bearer"},
    )


def admit(gateway: Gateway, principal: Principal, scope: Scope) -> Caller:
    """Return the caller. Raises Refused without the scope, or if there are too many requests."""
    gateway.rates.take("read" if scope == "read" else "write", principal.user_id)
    if scope not in principal.scopes:
        raise Refused(403, "scope", f"This key lacks the scope {scope!r}.")
    return Caller(gateway, principal, gateway.client_for(principal.user_id))


def _require(scope: Scope) -> Callable[..., Awaitable[Caller]]:
    async def find_caller(
        connection: HTTPConnection, principal: Annotated[Principal, Depends(authenticate)]
    ) -> Caller:
        return admit(find_gateway(connection), principal, scope)

    return find_caller


async def count_costly_request(
    connection: HTTPConnection, principal: Annotated[Principal, Depends(authenticate)]
) -> None:
    """Count a request that is much work. Raises Refused if there are too many."""
    find_gateway(connection).rates.take("costly", principal.user_id)


COSTLY = [Depends(count_costly_request)]
"""The further dependencies of a route that is much work."""

Reader: TypeAlias = Annotated[Caller, Depends(_require("read"))]
Writer: TypeAlias = Annotated[Caller, Depends(_require("write"))]
Administrator: TypeAlias = Annotated[Caller, Depends(_require("admin"))]


async def _address_to_read(
    caller: Reader, conversation_id: ConversationId, owner: Owner = None
) -> ConversationCall:
    return await address(caller, conversation_id, owner)


async def _address_to_write(
    caller: Writer, conversation_id: ConversationId, owner: Owner = None
) -> AsyncIterator[ConversationCall]:
    to = await address(caller, conversation_id, owner)
    yield to
    to.gateway.followers.hint(to.conversation.log.user_id, to.id)


async def address(caller: Caller, conversation_id: str, owner: str | None) -> ConversationCall:
    """Return a conversation by its id. Raises Invalid, and NotFound for a hidden one."""
    conversation = caller.client.conversation(conversation_id, owner)
    user_id = conversation.log.user_id
    is_own = user_id == caller.client.user_id
    name = conversation_id if is_own else f"{user_id}/{conversation_id}"
    await caller.gateway.hidden.require_visible(user_id, conversation_id, name)
    return ConversationCall(caller, conversation, owner)


ToRead: TypeAlias = Annotated[ConversationCall, Depends(_address_to_read)]
ToWrite: TypeAlias = Annotated[ConversationCall, Depends(_address_to_write)]
