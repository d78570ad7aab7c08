"""What was waiting in the inbox, as the events that say so."""

from agent.inbox import (
    CloseAsked,
    CondenseAsked,
    Configured,
    ConfirmationAsked,
    Confirmed,
    Failed,
    FoundStuck,
    InterruptAsked,
    Item,
    Noted,
    Nudged,
    PauseAsked,
    Refused,
    Rejected,
    ResumeAsked,
    Said,
)
from agent.spec import Spec
from events.base import Source
from events.condensation import CondensationRequest
from events.content import ImageContent, Message, TextContent
from events.control import (
    ConversationErrorEvent,
    ConversationStateUpdateEvent,
    InterruptEvent,
    PauseEvent,
    StuckEvent,
)
from events.event import Event
from events.messages import MessageEvent
from events.tools import ActionEvent, UserRejectObservation


def event_of(item: Item, at: str, spec: Spec) -> Event:
    """The event for an item; `spec` is the one in force. Rejections are answers: see there."""
    match item:
        case Said():
            return _said(item, at)
        case PauseAsked():
            return PauseEvent(timestamp=at)
        case InterruptAsked():
            return InterruptEvent(timestamp=at)
        case ResumeAsked():
            return updated(at, "status", "resumed", "user")
        case CloseAsked():
            return updated(at, "status", "closed", "user")
        case CondenseAsked():
            return CondensationRequest(timestamp=at, source="user")
        case Confirmed():
            return updated(at, "confirmed", list(item.actions), "user")
        case ConfirmationAsked():
            return updated(at, "status", "waiting_for_confirmation")
        case Configured():
            changed = spec.model_dump(mode="json", exclude_none=True) | item.changes
            return updated(at, "spec", changed, "user")
        case Noted():
            return updated(at, item.key, item.value, "user")
        case Failed():
            return ConversationErrorEvent(timestamp=at, code=item.code, detail=item.detail)
        case Refused():
            return updated(at, "refused", item.detail)
        case Nudged():
            return _nudge(item, at)
        case FoundStuck():
            found = item.model_dump(exclude={"kind"})
            return StuckEvent(timestamp=at, **found)
        case Rejected():
            raise AssertionError("a rejection answers actions, each with an event of its own")


def rejection(action: ActionEvent, reason: str, at: str) -> UserRejectObservation:
    return UserRejectObservation(
        timestamp=at,
        action_id=action.id,
        tool_name=action.tool_name,
        tool_call_id=action.tool_call_id,
        rejection_reason=reason,
    )


def _said(item: Said, at: str) -> MessageEvent:
    texts = (TextContent(text=item.text),) if item.text else ()
    images = (ImageContent(image_urls=item.images),) if item.images else ()
    return MessageEvent(
        timestamp=at,
        source="user",
        llm_message=Message(role="user", content=(*texts, *images)),
        message_id=item.message_id,
        sender=item.sender,
    )


def _nudge(item: Nudged, at: str) -> MessageEvent:
    return MessageEvent(
        timestamp=at,
        source="environment",
        llm_message=Message(role="user", content=(TextContent(text=item.text),)),
        sender=item.topic,
    )


def updated(
    at: str, key: str, value: object, source: Source = "environment"
) -> ConversationStateUpdateEvent:
    return ConversationStateUpdateEvent(timestamp=at, source=source, key=key, value=value)
