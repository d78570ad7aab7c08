"""The summary of a conversation, as lists show it: quick to import, unlike what makes one."""

import json
from dataclasses import dataclass
from typing import Any

from perdure.events.status import Phase
from perdure.events.usage import Usage

MAX_TITLE_CHARS = 300
"""The rest of a first message is no title."""

CALL_FIELDS = {"seq", "tool_name", "tool_call_id", "risk"}
"""The fields of a call that waits for a person."""


@dataclass(frozen=True)
class Summary:
    """The summary of a conversation; times are ISO, in UTC."""

    id: str
    status: str
    phase: Phase
    turn: int
    events: int
    model: str | None
    begun: str | None
    last_event: str | None
    title: str | None
    """The noted title, else the first message."""
    tags: tuple[str, ...]
    trouble: str | None
    asks: tuple[dict[str, Any], ...]
    """The calls that wait for a person."""
    tokens: int
    cost: float | None
    """US dollars; None where a model has no known price."""
    usage: Usage
    first_message: str | None
    """Read where no title is noted, or if it is asked for."""
    agent: str | None = None
    app: str | None = None
    wait: dict[str, Any] | None = None
    """What the agent waits for, as the fields of a `WaitDetail`."""
    is_hidden: bool = False
    """Whether its start says that lists leave it out, unless they are asked for such ones."""


def message_text(event: dict[str, Any]) -> str:
    if event.get("kind") != "MessageEvent":
        return ""
    parts = event.get("llm_message", {}).get("content", ())
    return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))


def shorten_title(text: str) -> str:
    """Return how a message begins, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_TITLE_CHARS else f"{line[:MAX_TITLE_CHARS]}..."


def find_trouble(body: bytes | None, end: int) -> str | None:
    """Return the sentence of a stored trouble; None where it is over, or events came since."""
    trouble = parse_fields(body)
    return trouble.get("sentence") if trouble.get("end") == end else None


def parse_fields(body: bytes | None) -> dict[str, Any]:
    """Parse an object as JSON; an empty one if it is lost or damaged."""
    try:
        fields = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}
