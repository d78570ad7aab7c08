"""The cursor of a list: where a page of it ends."""

import base64
import binascii
import json
from datetime import UTC, datetime
from typing import TypeAlias

from perdure.errors import Invalid

Position: TypeAlias = tuple[datetime, str]
"""The place of a conversation in the list: its last activity, and its id."""


def encode_cursor(place: Position) -> str:
    text = json.dumps([place[0].isoformat(), place[1]])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> Position:
    """Raises Invalid."""
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        moment, name = json.loads(text)
        parsed = datetime.fromisoformat(moment), str(name)
        parsed[0] < datetime.now(UTC)  # noqa: B015 - raises TypeError without a time zone
        return parsed
    except (binascii.Error, ValueError, TypeError, RecursionError) as error:
        raise Invalid("The cursor is none of a list.", "Begin without one.") from error
