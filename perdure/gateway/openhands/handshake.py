"""The first words on a socket of OpenHands' client: who asks."""

import asyncio
import json
from typing import Any

from starlette.websockets import WebSocket

from perdure.gateway.callers import (
    SESSION_KEY_HEADER,
    Caller,
    admit,
    authenticate,
    check_secret,
    find_gateway,
    unauthorized,
)
from perdure.gateway.edge.audit import audit_refusal, note_principal

AUTH_TIMEOUT = 10.0
"""Seconds for the first message of a client, which has its key."""


async def authenticate_socket(socket: WebSocket) -> Caller:
    """Find who asks: by a header, the query or the first message. Raises Refused."""
    gateway = find_gateway(socket)
    named = {SESSION_KEY_HEADER, "authorization"} & set(socket.headers.keys())
    if named:
        return admit(gateway, await authenticate(socket), "read")
    secret = socket.query_params.get("session_api_key") or await _receive_key(socket)
    principal = await check_secret(gateway, socket, secret)
    if principal is None:
        audit_refusal(socket, 4001)
        raise unauthorized()
    note_principal(socket, principal)
    return admit(gateway, principal, "read")


async def _receive_key(socket: WebSocket) -> str:
    """Receive the key in the first message. Raises TimeoutError, and Refused without one."""
    async with asyncio.timeout(AUTH_TIMEOUT):
        message = parse_message(await socket.receive_text())
    key = message.get("session_api_key") if message.get("type") == "auth" else None
    if not isinstance(key, str):
        raise unauthorized()
    return key


def parse_message(text: str) -> dict[str, Any]:
    """Parse a message of the client; one that cannot be read is empty."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}
