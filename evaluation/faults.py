"""What is wrong with what somebody wrote, in the words of who wrote it."""

from itertools import islice
from typing import Any

from pydantic import ValidationError

MOST_NAMED = 3
"""Faults of one thing that are told."""

LONGEST = 300
"""Characters of one fault."""


def faults(error: ValidationError) -> str:
    """Each with the key that it is at."""
    found = error.errors(include_url=False)
    more = [f"and {len(found) - MOST_NAMED} more"] if len(found) > MOST_NAMED else []
    return "; ".join([*islice(map(_fault, found), MOST_NAMED), *more])


def _fault(fault: Any) -> str:
    key = ".".join(map(str, fault["loc"]))
    match fault["type"]:
        case "extra_forbidden":
            told = f"there is no key {key!r}"
        case "missing":
            told = f"the key {key!r} is missing"
        case "value_error":
            told = ": ".join(one for one in (key, str(fault["ctx"]["error"])) if one)
        case _:
            text = fault["msg"]
            told = ": ".join(one for one in (key, text[:1].lower() + text[1:]) if one)
    return told[:LONGEST].encode(errors="replace").decode()
