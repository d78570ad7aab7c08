"""Parsers of arguments: texts, images and `key=value` assignments."""

import json
import sys
from collections.abc import Iterable
from typing import Any

from perdure.client.images import Image, check_image
from perdure.errors import Invalid

MAX_KEY_DOTS = 20
"""No setting lies deeper."""


def read_text(argument: str) -> str:
    """Return the argument, or all of stdin where it is `-`. Raises Invalid where not UTF-8."""
    try:
        return sys.stdin.read() if argument == "-" else argument
    except UnicodeDecodeError as error:
        raise Invalid("What was given on stdin is no text in UTF-8: convert it first.") from error


def load_images(sources: Iterable[str]) -> tuple[Image, ...]:
    """Keep addresses, and read files. Raises Invalid for what no model takes as an image."""
    return tuple(map(check_image, sources))


def parse_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """Parse `limits.max_budget=50` into `{"limits": {"max_budget": 50}}`. Raises Invalid."""
    fields: dict[str, Any] = {}
    for key, value in map(parse_assignment, assignments):
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


def parse_assignment(assignment: str) -> tuple[str, Any]:
    """Parse one assignment; a value that is not JSON is text. Raises Invalid."""
    key, equals, text = assignment.partition("=")
    if not equals or not all(key.split(".")) or key.count(".") > MAX_KEY_DOTS:
        raise Invalid(f"{assignment!r} is no key=value, such as limits.max_iterations=50.")
    try:
        return key, json.loads(text)
    except (ValueError, RecursionError):
        return key, text
