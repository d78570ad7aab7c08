"""Moments as people write them."""

import re
from datetime import UTC, datetime, timedelta

from client.errors import Invalid

FROM_NOW = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd])")

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def moment_of(text: str, now: datetime) -> str:
    """A moment to come, in UTC as events have it: `90m`, `2h`, `1d` from now, or an ISO date.

    Raises Invalid.
    """
    try:
        at = _moment(text, now).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Invalid(
            f"{text!r} is not a moment.", "Write 90m, 2h or 1d from now, or 2030-01-31T18:00+01:00."
        ) from error
    if at <= now:
        raise Invalid(f"{text!r} lies in the past.")
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f")


def _moment(text: str, now: datetime) -> datetime:
    if span := FROM_NOW.fullmatch(text):
        return now + timedelta(**{UNITS[span[2]]: float(span[1])})
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)
