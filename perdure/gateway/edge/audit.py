"""The audit: a line of JSON for each refused request and each administrative act.

No line has a secret, the text of a request or its query.
"""

import json
import logging

from starlette.requests import HTTPConnection

from perdure.gateway.identity.principal import Principal

logger = logging.getLogger("perdure.gateway.audit")

PRINCIPAL_KEY = "perdure.principal"
"""The place of the principal in the scope of a request, once it is known."""

MAX_PATH_CHARS = 300

POSTS_PATH = "/v1/posts/"
"""The beginning of addresses to which others post; their end is a secret."""

JSON = {"is_json": True}
"""The mark of a record whose message is JSON: a log in JSON has its fields in place of a text."""


def note_principal(connection: HTTPConnection, principal: Principal) -> None:
    """Note who has sent a request."""
    connection.scope[PRINCIPAL_KEY] = principal


def audit(connection: HTTPConnection, act: str, **details: object) -> None:
    """Write that a request has done an act, such as `key.create`."""
    _write(connection, {"act": act, **details})


def audit_refusal(connection: HTTPConnection, status: int, code: str = "") -> None:
    """Write that a request was refused with a status, or a socket with a close code."""
    _write(connection, {"act": "refused", "status": status, **({"code": code} if code else {})})


def describe_request(connection: HTTPConnection) -> dict[str, object]:
    """Return who has sent a request, from where and to what."""
    scope = connection.scope
    principal = scope.get(PRINCIPAL_KEY)
    fields: dict[str, object] = {
        "method": scope.get("method", "SOCKET"),
        "path": name_path(connection)[:MAX_PATH_CHARS],
        "address": connection.client.host if connection.client else None,
    }
    if isinstance(principal, Principal):
        fields |= {"user": principal.user_id, "credential": principal.credential}
        fields |= {"key": principal.key_id} if principal.key_id else {}
    return fields


def name_path(connection: HTTPConnection) -> str:
    """Return the path of a request, without the secret that it may have."""
    path = str(connection.scope["path"])
    if not path.startswith(POSTS_PATH):
        return path
    return POSTS_PATH + path.removeprefix(POSTS_PATH).partition("/")[0]


def _write(connection: HTTPConnection, fields: dict[str, object]) -> None:
    logger.info("%s", json.dumps(fields | describe_request(connection)), extra=JSON)
