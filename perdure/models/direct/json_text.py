"""JSON in the bytes of a request's body."""

import json
from collections.abc import Mapping
from typing import Any

ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def dump(value: Any) -> bytes:
    """Write a value as compact JSON.

    A surrogate without its pair has no UTF-8: the model gets a question mark.
    """
    return ENCODER.encode(value).encode(errors="replace")


def without_nulls(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Drop the null fields of a message, such as the content beside tool calls, as litellm does."""
    if None not in message.values():
        return message
    return {name: value for name, value in message.items() if value is not None}
