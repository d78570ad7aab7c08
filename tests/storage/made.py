"""Events and origins for the tests of the log."""

from collections.abc import Iterable
from uuid import uuid4

from perdure.events.content import Message, MessageToolCall, TextContent
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.entry import Entry, Origin
from perdure.events.event import UnknownEvent
from perdure.events.messages import MessageEvent
from perdure.events.observations import ThinkObservation
from perdure.events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from perdure.storage.log.entry_cache import EntryCache
from perdure.storage.log.event_log import EventLog
from perdure.storage.store import Store

NOW = "2025-01-01T00:00:00.000000"
LATER = "2025-01-01T00:00:01.000000"


def log_in(store: Store, cache: EntryCache | None = None, conversation: str = "") -> EventLog:
    return EventLog(store, "somebody", conversation or str(uuid4()), cache)


def origin_by(activity: str, run: str = "run-1") -> Origin:
    return Origin(run=run, activity=activity)


def user_message(text: str, at: str = NOW) -> MessageEvent:
    message = Message(role="user", content=(TextContent(text=text),))
    return MessageEvent(timestamp=at, source="user", llm_message=message)


def action_event(call: str, at: str = NOW) -> ActionEvent:
    tool_call = MessageToolCall(id=call, name="think", arguments="{}")
    return ActionEvent(
        timestamp=at,
        tool_name="think",
        tool_call_id=call,
        tool_call=tool_call,
        llm_response_id="response",
    )


def observation_event(action_id: str, at: str = NOW) -> ObservationEvent:
    return ObservationEvent(
        timestamp=at,
        source="environment",
        action_id=action_id,
        tool_name="think",
        tool_call_id="call",
        observation=ThinkObservation(),
    )


def error_event(action_id: str, at: str = NOW) -> AgentErrorEvent:
    return AgentErrorEvent(
        timestamp=at,
        error="Nobody knows what came of it.",
        action_id=action_id,
        tool_name="think",
        tool_call_id="call",
        classification="outcome_unknown",
    )


def opened_event(run: str) -> ConversationStateUpdateEvent:
    return ConversationStateUpdateEvent(timestamp=NOW, key="opened", value={"run_id": run})


def newer_event(kind: str = "HologramEvent", **fields: str) -> UnknownEvent:
    return UnknownEvent(kind=kind, raw={"kind": kind, **fields})


def texts(entries: Iterable[Entry]) -> list[str]:
    """Return each message's text, or the kind of any other event."""
    return [_text(entry) for entry in entries]


def _text(entry: Entry) -> str:
    if not isinstance(entry.event, MessageEvent):
        return entry.event.kind
    part = entry.event.llm_message.content[0]
    return part.text if isinstance(part, TextContent) else part.type
