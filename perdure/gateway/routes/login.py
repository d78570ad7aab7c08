"""The sessions of browsers, and tickets for sockets."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from perdure.api.keys import LogIn, Me, Ticket
from perdure.errors import Invalid
from perdure.gateway.callers import (
    Reader,
    authenticate,
    check_secret,
    find_gateway,
    require_own_page,
    unauthorized,
)
from perdure.gateway.edge.audit import audit, note_principal
from perdure.gateway.gateway import Gateway
from perdure.gateway.identity.principal import Principal
from perdure.gateway.identity.sessions import SESSION_LIFETIME, TICKET_LIFETIME
from perdure.gateway.routes.me import describe

router = APIRouter(prefix="/v1", tags=["keys"])


@router.post("/login")
async def log_in(body: LogIn, request: Request, response: Response) -> Me:
    """Begin a session of a browser: the answer sets its cookie."""
    gateway = find_gateway(request)
    if "sec-fetch-site" in request.headers or "origin" in request.headers:
        require_own_page(gateway, request)
    principal = await _find_principal(gateway, request, body)
    if principal is None:
        raise unauthorized()
    note_principal(request, principal)
    audit(request, "login")
    secret = await gateway.identities.sessions.begin(principal)
    response.set_cookie(
        gateway.site.cookie_name(request),
        secret,
        max_age=int(SESSION_LIFETIME.total_seconds()),
        httponly=True,
        samesite="strict",
        secure=gateway.site.is_secure(request),
    )
    return describe(principal)


async def _find_principal(gateway: Gateway, request: Request, body: LogIn) -> Principal | None:
    if (body.code is None) == (body.key is None):
        raise Invalid("Give a `code` or a `key`, and not both.")
    if body.code is not None:
        return await check_secret(gateway, request, body.code, "login")
    return await check_secret(gateway, request, body.key or "")


@router.post("/logout", status_code=204)
async def log_out(
    request: Request, response: Response, principal: Annotated[Principal, Depends(authenticate)]
) -> None:
    """End the session of the browser, for all gateways."""
    gateway = find_gateway(request)
    if principal.session is None:
        raise Invalid("The request has no session.", "A key is ended by DELETE /v1/keys/{id}.")
    await gateway.identities.sessions.end(principal.session)
    audit(request, "logout")
    response.delete_cookie(gateway.site.cookie_name(request), httponly=True, samesite="strict")


@router.post("/tickets", status_code=201)
async def make_ticket(caller: Reader) -> Ticket:
    """Make a ticket, by which a socket is opened once, where it can send no header."""
    ticket = await caller.gateway.identities.sessions.make_ticket(caller.principal)
    return Ticket(ticket=ticket, expires_in=int(TICKET_LIFETIME.total_seconds()))
