"""Parser of points in time, written as a duration from now or an ISO date."""

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
        moment = _parse(text, now).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Invalid(
            f"{text!r} is not a moment.", "Write 90m, 2h or 1d from now, or 2030-01-31T18:00+01:00."
        ) from error
    if moment <= now:
        raise Invalid(f"{text!r} lies in the past.")
    return moment.strftime(TIMESTAMP_FORMAT)


def _parse(text: str, now: datetime) -> datetime:
    if span := DURATION.fullmatch(text):
        return now + timedelta(**{UNIT_NAMES[span[2]]: float(span[1])})
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
