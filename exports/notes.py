"""Events that are neither said nor done, in a sentence each."""

import re
from typing import Any

from events.condensation import Condensation, CondensationRequest
from events.content import text_of
from events.control import (
    ConversationErrorEvent,
    ConversationStateUpdateEvent,
    InterruptEvent,
    PauseEvent,
    SecurityAnalysisEvent,
    StuckEvent,
)
from events.event import AnyEvent, UnknownEvent
from events.messages import RecallEvent
from events.tools import AgentErrorEvent, ObservationEvent, UserRejectObservation
from exports.json_text import compact

QUIET = (CondensationRequest, SecurityAnalysisEvent, ConversationStateUpdateEvent)
"""What happens all the time, and matters to who keeps house."""

_MOMENT = re.compile(r"[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}\.[0-9]{6}")


def note(event: AnyEvent) -> str:
    """What happened; empty for what was said or done."""
    match event:
        case Condensation():
            return _condensed(event)
        case CondensationRequest():
            return "The agent's view was to be made smaller."
        case PauseEvent():
            return "The user asked for a pause."
        case InterruptEvent():
            return "The user stopped what was running."
        case StuckEvent():
            where = f"events {event.first_seq} to {event.last_seq}"
            return f"The agent went in circles: {event.pattern}, {event.count} times, {where}."
        case ConversationErrorEvent():
            return f"{event.code}: {event.detail}"
        case SecurityAnalysisEvent():
            return f"Risk {', '.join(event.risks.values())}, by {event.analyzer}."
        case ConversationStateUpdateEvent():
            return f"{event.key}: {_value(event.value)}"
        case RecallEvent():
            return event.content
        case UnknownEvent():
            return f"{event.kind}, of a newer version: {_value(event.raw)}"
        case _:
            return _stray(event)


def _condensed(event: Condensation) -> str:
    gone = f"{len(event.forgotten_event_ids)} events left the agent's view."
    return f"{gone} In their place:\n{event.summary}" if event.summary else gone


def _stray(event: AnyEvent) -> str:
    """An answer that came too late, or to nothing."""
    match event:
        case ObservationEvent():
            return f"A late result of {event.tool_name}: {text_of(event.observation.content)}"
        case AgentErrorEvent():
            return f"A late error of {event.tool_name}: {event.error}"
        case UserRejectObservation():
            return f"A late rejection of {event.tool_name}: {event.rejection_reason}"
        case _:
            return ""


def _value(value: Any) -> str:
    return value if isinstance(value, str) else compact(value).decode()


def moment(event: AnyEvent) -> str:
    """When it happened, in ISO 8601; empty where a newer writer writes that in another way."""
    return f"{event.timestamp}Z" if _MOMENT.fullmatch(event.timestamp) else ""
