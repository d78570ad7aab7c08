"""Events and origins for the tests of the log."""

from collections.abc import Iterable
from uuid import uuid4

from events.content import Message, MessageToolCall, TextContent
from events.control import ConversationStateUpdateEvent
from events.entry import Entry, Origin
from events.event import UnknownEvent
from events.messages import MessageEvent
from events.observations import ThinkObservation
from events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from storage.cache import EntryCache
from storage.log import EventLog
from storage.store import Store

NOW = "2025-01-01T00:00:00.000000"
LATER = "2025-01-01T00:00:01.000000"


def log_in(store: Store, cache: EntryCache | None = None, conversation: str = "") -> EventLog:
    return EventLog(store, "somebody", conversation or str(uuid4()), cache)


def by(activity: str, run: str = "run-1") -> Origin:
    return Origin(run=run, activity=activity)


def said(text: str, at: str = NOW) -> MessageEvent:
    message = Message(role="user", content=(TextContent(text=text),))
    return MessageEvent(timestamp=at, source="user", llm_message=message)


def called(call: str, at: str = NOW) -> ActionEvent:
    tool_call = MessageToolCall(id=call, name="think", arguments="{}")
    return ActionEvent(
        timestamp=at,
        tool_name="think",
        tool_call_id=call,
        tool_call=tool_call,
        llm_response_id="response",
    )


def returned(action_id: str, at: str = NOW) -> ObservationEvent:
    return ObservationEvent(
        timestamp=at,
        source="environment",
        action_id=action_id,
        tool_name="think",
        tool_call_id="call",
        observation=ThinkObservation(),
    )


def failed(action_id: str, at: str = NOW) -> AgentErrorEvent:
    return AgentErrorEvent(
        timestamp=at,
        error="Nobody knows what came of it.",
        action_id=action_id,
        tool_name="think",
        tool_call_id="call",
        classification="outcome_unknown",
    )


def opened(run: str) -> ConversationStateUpdateEvent:
    return ConversationStateUpdateEvent(timestamp=NOW, key="opened", value={"run_id": run})


def from_the_future(kind: str = "HologramEvent", **fields: str) -> UnknownEvent:
    return UnknownEvent(kind=kind, raw={"kind": kind, **fields})


def texts(entries: Iterable[Entry]) -> list[str]:
    """What was said, or the kind of what is no message."""
    return [_text(entry) for entry in entries]


def _text(entry: Entry) -> str:
    if not isinstance(entry.event, MessageEvent):
        return entry.event.kind
    part = entry.event.llm_message.content[0]
    return part.text if isinstance(part, TextContent) else part.type
