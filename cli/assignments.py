"""`key=value` on the command line, the value in JSON where it is any."""

import json
from collections.abc import Iterable
from typing import Any

from client.errors import Invalid

DEEPEST = 20
"""Dots in a key: no setting lies as deep."""


def fields_of(assignments: Iterable[str]) -> dict[str, Any]:
    """`limits.max_iterations=50` as `{"limits": {"max_iterations": 50}}`. Raises Invalid."""
    fields: dict[str, Any] = {}
    for key, value in map(pair_of, assignments):
        *path, last = key.split(".")
        inner = fields
        for part in path:
            inner = inner.setdefault(part, {})
            if not isinstance(inner, dict):
                raise Invalid(f"{key!r} is given as a whole and in part: give it once.")
        if last in inner:
            raise Invalid(f"{key!r} is given twice.")
        inner[last] = value
    return fields


def pair_of(assignment: str) -> tuple[str, Any]:
    """A key and its value, which is a text where it is no JSON. Raises Invalid."""
    key, equals, text = assignment.partition("=")
    if not equals or not all(key.split(".")) or key.count(".") > DEEPEST:
        raise Invalid(f"{assignment!r} is no key=value, such as limits.max_iterations=50.")
    try:
        return key, json.loads(text)
    except (ValueError, RecursionError):
        return key, text
