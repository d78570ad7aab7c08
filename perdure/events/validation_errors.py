"""Sentences on invalid input, of bounded length, in the terms of its author."""

from itertools import islice
from typing import Any

from pydantic import ValidationError

MAX_ERRORS = 3
MAX_ERROR_CHARS = 300
MAX_QUOTED_CHARS = 120


def describe_errors(error: ValidationError) -> str:
    """Describe each error with its key."""
    errors = error.errors(include_url=False)
    more = [f"and {len(errors) - MAX_ERRORS} more"] if len(errors) > MAX_ERRORS else []
    return "; ".join([*islice(map(_describe, errors), MAX_ERRORS), *more])


def quote(text: str) -> str:
    """Quote input, cut to a readable length; safe for any characters."""
    return repr(text if len(text) <= MAX_QUOTED_CHARS else f"{text[:MAX_QUOTED_CHARS]}…")


def _describe(error: Any) -> str:
    key = ".".join(map(str, error["loc"]))
    match error["type"]:
        case "extra_forbidden":
            text = f"there is no key {key!r}"
        case "missing":
            text = f"the key {key!r} is missing"
        case kind:
            message = error["msg"][:1].lower() + error["msg"][1:]
            reason = str(error["ctx"]["error"]) if kind == "value_error" else message
            text = f"{key}: {reason}" if key else reason
    return text[:MAX_ERROR_CHARS].encode(errors="replace").decode()
