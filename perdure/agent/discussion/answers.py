"""What the answers of models in a discussion mean."""

import json
import re
from collections.abc import Sequence
from typing import Any

from perdure.events.base import Frozen

DEFAULT_URGENCY = 5
MAX_LINE_CHARS = 500
_PASS = re.compile(r"\W*(pass|no|nothing|i pass|nichts)\W*", re.IGNORECASE)


class IntentAnswer(Frozen):
    """The wish of an agent to speak: its urgency (0 to 10), and what it is about."""

    speaks: bool
    urgency: int = 0
    line: str = ""


class GrantAnswer(Frozen):
    """The speakers that the moderator's model grants, and whether it sees a consensus."""

    speakers: tuple[str, ...]
    consensus: bool = False


class BallotAnswer(Frozen):
    ballot: str
    reason: str = ""


def find_object(text: str) -> dict[str, Any] | None:
    """Return the first JSON object in a text, which a model may have wrapped in words."""
    decoder = json.JSONDecoder()
    start = text.find("{")
    while start >= 0:
        try:
            value, _ = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            return value
        start = text.find("{", start + 1)
    return None


def parse_intent(text: str) -> IntentAnswer | None:
    """Parse whether an agent wants to speak; None for an answer without words."""
    if not text.strip():
        return None
    fields = find_object(text)
    if fields is None:
        if _PASS.fullmatch(text):
            return IntentAnswer(speaks=False)
        return IntentAnswer(speaks=True, urgency=DEFAULT_URGENCY, line=_line(text))
    if not fields.get("speak", "line" in fields):
        return IntentAnswer(speaks=False)
    return IntentAnswer(
        speaks=True, urgency=_urgency(fields.get("urgency")), line=_line(fields.get("line", ""))
    )


def parse_grants(text: str, candidates: Sequence[str], most: int) -> GrantAnswer | None:
    """Parse whom the moderator grants a speech, of the candidates; None for no such answer."""
    fields = find_object(text)
    names = fields.get("grant") if fields else None
    if fields is None or not isinstance(names, list):
        return None
    chosen = [name for name in dict.fromkeys(map(str, names)) if name in candidates]
    return GrantAnswer(speakers=tuple(chosen[:most]), consensus=fields.get("consensus") is True)


def parse_ballot(text: str, options: Sequence[str]) -> BallotAnswer | None:
    """Parse a ballot; None if it is none of the options."""
    fields = find_object(text) or {"ballot": text.strip().strip(".\"'“”")}
    wanted = str(fields.get("ballot", "")).strip().casefold()
    for option in options:
        if option.casefold() == wanted:
            return BallotAnswer(ballot=option, reason=_line(fields.get("reason", "")))
    return None


def _urgency(value: Any) -> int:
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value:
        return round(max(0, min(10, value)))
    return DEFAULT_URGENCY


def _line(value: Any) -> str:
    line = " ".join(str(value).split())
    return line if len(line) <= MAX_LINE_CHARS else f"{line[: MAX_LINE_CHARS - 1]}…"
