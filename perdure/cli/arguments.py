"""Parsers of arguments: texts, images, `key=value` assignments and points in time."""

import json
import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from perdure.client.images import Image, check_image
from perdure.errors import Invalid
from perdure.events.base import TIMESTAMP_FORMAT

MAX_KEY_DOTS = 20
"""No setting lies deeper."""

DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd])")

UNIT_NAMES = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


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


def parse_moment(text: str, now: datetime) -> str:
    """Parse `90m`, `2h` or `1d` from now, or an ISO date, into UTC as events have it.

    Raises Invalid, also for the past.
    """
    try:
        moment = _parse_moment(text, now).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Invalid(
            f"{text!r} is not a moment.", "Write 90m, 2h or 1d from now, or 2030-01-31T18:00+01:00."
        ) from error
    if moment <= now:
        raise Invalid(f"{text!r} lies in the past.")
    return moment.strftime(TIMESTAMP_FORMAT)


def parse_since(text: str, now: datetime) -> datetime:
    """Parse `90m`, `2h` or `1d` ago, or an ISO date; one without a zone is of this machine's.

    Raises Invalid.
    """
    try:
        if span := DURATION.fullmatch(text):
            return now - _parse_span(span)
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError) as error:
        raise Invalid(
            f"{text!r} is not a time.", "Write 90m, 2h or 1d for so long ago, or 2030-01-31."
        ) from error


def _parse_span(span: re.Match[str]) -> timedelta:
    return timedelta(**{UNIT_NAMES[span[2]]: float(span[1])})


def _parse_moment(text: str, now: datetime) -> datetime:
    if span := DURATION.fullmatch(text):
        return now + _parse_span(span)
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
