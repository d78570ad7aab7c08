"""Building the events of steps, which for an inbox item follow from the item."""

from typing import Any

from perdure.agent.loop import inbox
from perdure.agent.spec import Agent
from perdure.events.base import Source
from perdure.events.condensation import CondensationRequest
from perdure.events.content import ImageContent, Message, TextContent
from perdure.events.control import (
    ConversationErrorEvent,
    ConversationStateUpdateEvent,
    InterruptEvent,
    PauseEvent,
    StuckEvent,
)
from perdure.events.event import Event
from perdure.events.messages import MessageEvent
from perdure.events.tools import ActionEvent, UserRejectObservation


def to_event(item: inbox.InboxItem, at: str, spec: Agent) -> Event:
    """Translate an item into its event; `spec` is in force."""
    match item:
        case inbox.UserMessage():
            return _message_event(item, at)
        case inbox.PauseRequest():
            return PauseEvent(timestamp=at)
        case inbox.InterruptRequest():
            source: Source = "user" if item.reason is None else "environment"
            return InterruptEvent(timestamp=at, source=source, reason=item.reason)
        case inbox.ResumeRequest():
            return state_update(at, "status", "resumed", "user")
        case inbox.CloseRequest():
            return state_update(at, "status", "closed", "user")
        case inbox.CondenseRequest():
            return CondensationRequest(timestamp=at, source="user")
        case inbox.Approval():
            return state_update(at, "confirmed", list(item.actions), "user")
        case inbox.ConfirmationRequest():
            return state_update(at, "status", "waiting_for_confirmation")
        case inbox.SpecChange():
            changed = spec.model_dump(mode="json", exclude_none=True) | item.changes
            return state_update(at, "spec", changed, "user")
        case inbox.StateNote():
            return state_update(at, item.key, item.value, "user")
        case inbox.TurnFailure():
            return error_event(at, item.code, item.detail)
        case inbox.RefusedInput():
            return state_update(at, "refused", item.detail)
        case inbox.AgentWarning():
            warning = inbox.UserMessage(text=item.text, sender=item.topic)
            return _message_event(warning, at, "environment")
        case inbox.StuckFinding():
            return StuckEvent(timestamp=at, **item.model_dump(exclude={"kind"}))
        case inbox.Rejection():
            raise AssertionError("a rejection answers actions, each with an event of its own")


def rejection(action: ActionEvent, reason: str, at: str) -> UserRejectObservation:
    return UserRejectObservation(**answer_fields(action, at), rejection_reason=reason)


def answer_fields(action: ActionEvent, at: str) -> dict[str, Any]:
    """Return the fields of the event that answers an action."""
    return {
        "timestamp": at,
        "action_id": action.id,
        "tool_name": action.tool_name,
        "tool_call_id": action.tool_call_id,
    }


def _message_event(item: inbox.UserMessage, at: str, source: Source = "user") -> MessageEvent:
    texts = (TextContent(text=item.text),) if item.text else ()
    images = (ImageContent(image_urls=item.images),) if item.images else ()
    return MessageEvent(
        timestamp=at,
        source=source,
        llm_message=Message(role="user", content=(*texts, *images)),
        message_id=item.message_id,
        sender=item.sender,
    )


def state_update(
    at: str, key: str, value: object, source: Source = "environment"
) -> ConversationStateUpdateEvent:
    return ConversationStateUpdateEvent(timestamp=at, source=source, key=key, value=value)


def error_event(at: str, code: str, detail: str) -> ConversationErrorEvent:
    return ConversationErrorEvent(timestamp=at, code=code, detail=detail)
