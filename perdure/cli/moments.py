"""Parsers of points in time."""

import re
from datetime import UTC, datetime, timedelta

from perdure.errors import Invalid
from perdure.events.base import TIMESTAMP_FORMAT

DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd])")

UNIT_NAMES = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


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


def parse_span(text: str) -> float:
    """Parse `90s`, `15m`, `2h` or `1d` into seconds. Raises Invalid."""
    if (span := DURATION.fullmatch(text)) is None:
        raise Invalid(f"{text!r} is no span of time.", "Write 90s, 15m, 2h or 1d.")
    return _parse_span(span).total_seconds()


def _parse_span(span: re.Match[str]) -> timedelta:
    return timedelta(**{UNIT_NAMES[span[2]]: float(span[1])})


def _parse_moment(text: str, now: datetime) -> datetime:
    if span := DURATION.fullmatch(text):
        return now + _parse_span(span)
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
