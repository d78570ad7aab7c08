"""Signatures of Standard Webhooks (https://www.standardwebhooks.com)."""

import base64
import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime

from standardwebhooks import Webhook, WebhookVerificationError

PREFIX = "whsec_"
SECRET_BYTES = 32
"""Random bytes of a secret of ours."""

ALLOWED_BYTES = range(24, 65)
"""Bytes of anybody's secret, as the standard has it."""

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
"""The headers of a post."""


def new_secret() -> str:
    """Make a secret by which a receiver knows who has sent a post."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def sign(signing_secrets: Iterable[str], post_id: str, at: datetime, body: str) -> dict[str, str]:
    """Return the headers of a post: the time is UTC, and each secret has a signature."""
    signatures = [Webhook(secret).sign(post_id, at, body) for secret in signing_secrets]
    return {
        ID: post_id,
        TIMESTAMP: str(int(at.timestamp())),
        SIGNATURE: " ".join(signatures),
    }


def find_secret_error(secret: str) -> str | None:
    """Return a sentence on why this is no secret, or None if it is one."""
    try:
        encoded = secret.removeprefix(PREFIX)
        size = len(base64.b64decode(encoded, validate=True))
    except ValueError:
        size = 0
    if secret.startswith(PREFIX) and size in ALLOWED_BYTES:
        return None
    return f"A secret of signatures is {PREFIX} and 24 to 64 bytes in base64."


def find_signature_error(secret: str, headers: Mapping[str, str], body: bytes) -> str | None:
    """Return why a post is not one of who has the secret, in a clause; None if it is.

    One that is, has a signature and is at most five minutes old.
    """
    try:
        Webhook(secret).verify(body, dict(headers), json_parse=False)
    except WebhookVerificationError as error:
        return str(error).lower()
    except ValueError:  # no base64, or no UTF-8
        return "invalid signature headers"
    return None
