"""The times that an agent waits for: instants, durations, time zones."""

import re
import zoneinfo
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import Field

from perdure.events.base import TIMESTAMP_FORMAT
from perdure.events.status import describe_time
from perdure.tools.arguments import Arguments

MIN_WAIT = timedelta(seconds=1)
MAX_WAIT = timedelta(days=366)

UNITS = {
    "s": 1.0,
    "m": 60.0,
    "h": 3_600.0,
    "d": 86_400.0,
    "w": 604_800.0,
}
"""The seconds of each unit, by its first letter."""

_PART = re.compile(
    r"(\d+(?:\.\d+)?)\s*(s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:(?:ou)?rs?)?|d(?:ays?)?|w(?:eeks?)?)"
    r"(?![a-z])",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"[\s,]*(?:and)?[\s,]*", re.IGNORECASE)

DURATION_EXAMPLES = "90s, 15m, 2h 30m, 3d or 1w"
INSTANT_EXAMPLES = "2026-03-01T08:00:00Z, or 2026-03-01T08:00 with a time_zone"


class WaitTimes(Arguments):
    """The end of a wait, as an instant or as a duration from now on."""

    until: str | None = Field(
        default=None, description=f"An instant in ISO 8601: {INSTANT_EXAMPLES}; without, it is UTC."
    )
    duration: str | None = Field(
        default=None, alias="for", description=f"How long from now on: {DURATION_EXAMPLES}."
    )
    time_zone: str | None = Field(
        default=None, description="The IANA name of the time zone of `until`, as Europe/Oslo."
    )

    def as_data(self) -> dict[str, Any]:
        """Return the end as the data of an action: `until` (UTC), or `seconds`, or neither.

        Raises ValueError with a sentence for the model.
        """
        if self.until is not None and self.duration is not None:
            raise ValueError("give `until` or `for`, and not both.")
        if self.time_zone is not None and self.until is None:
            raise ValueError("`time_zone` is that of `until`, which is missing.")
        if self.until is not None:
            return {"until": parse_instant(self.until, self.time_zone, datetime.now(UTC))}
        return {} if self.duration is None else {"seconds": parse_duration(self.duration)}


def parse_duration(text: str) -> float:
    """Return the seconds of a duration such as `2h 30m`. Raises ValueError with a sentence."""
    seconds, position = 0.0, 0
    while position < len(text.strip()) and (part := _PART.match(text.strip(), position)):
        seconds += float(part[1]) * UNITS[part[2][0].lower()]
        between = _BETWEEN.match(text.strip(), part.end())
        position = part.end() if between is None else between.end()
    if position == 0 or position < len(text.strip()):
        raise ValueError(f"`for`: {text[:60]!r} is no duration; write it as {DURATION_EXAMPLES}.")
    if not MIN_WAIT.total_seconds() <= seconds <= MAX_WAIT.total_seconds():
        raise ValueError(f"`for`: a wait takes from one second to {MAX_WAIT.days} days.")
    return seconds


def parse_instant(text: str, time_zone: str | None, now: datetime) -> str:
    """Return an instant after `now` in UTC, as a timestamp. Raises ValueError with a sentence."""
    zone = _find_zone(time_zone)
    try:
        instant = datetime.fromisoformat(text.strip())
        has_offset = instant.tzinfo is not None
        end = (instant if has_offset else instant.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(
            f"`until`: {text[:60]!r} is no instant in ISO 8601; write it as {INSTANT_EXAMPLES}."
        ) from None
    if has_offset and time_zone is not None:
        raise ValueError("`until` has an offset from UTC already: leave `time_zone` out.")
    if end <= now:
        present = describe_time(now.strftime(TIMESTAMP_FORMAT))
        past = describe_time(end.isoformat())
        raise ValueError(f"`until`: {past} is in the past; it is {present} now.")
    if end - now > MAX_WAIT:
        raise ValueError(f"`until`: a wait takes {MAX_WAIT.days} days at most.")
    return end.strftime(TIMESTAMP_FORMAT)


def _find_zone(name: str | None) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name or "UTC")
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            f"`time_zone`: there is no time zone {(name or '')[:60]!r}; give an IANA name, such as "
            "Europe/Oslo, or leave it out for UTC."
        ) from None
