"""Events other than messages and calls, in a sentence each."""

import re
from typing import Any

from perdure.events.condensation import CondensationRequest
from perdure.events.control import ConversationStateUpdateEvent, SecurityAnalysisEvent
from perdure.events.event import AnyEvent, UnknownEvent
from perdure.exports.json_text import compact_json

HOUSEKEEPING_EVENTS = (CondensationRequest, SecurityAnalysisEvent, ConversationStateUpdateEvent)
"""Frequent events that matter only to an operator."""

_TIMESTAMP = re.compile(r"[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}\.[0-9]{6}")


def describe_event(event: AnyEvent) -> str:
    """Describe the event in a sentence; return nothing for a message or a call."""
    match event:
        case ConversationStateUpdateEvent():
            return f"{event.key}: {_to_text(event.value)}"
        case UnknownEvent():
            return f"{event.kind}, of a newer version: {_to_text(event.raw)}"
        case _:
            return event.export_note()


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else compact_json(value).decode()


def utc_timestamp(event: AnyEvent) -> str:
    """Return the event's time in ISO 8601, or nothing if a newer version wrote another form."""
    return f"{event.timestamp}Z" if _TIMESTAMP.fullmatch(event.timestamp) else ""
