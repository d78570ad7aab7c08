"""Translation of inbox items into events."""

from perdure.agent.loop.inbox import (
    AgentWarning,
    Approval,
    CloseRequest,
    CondenseRequest,
    ConfirmationRequest,
    InboxItem,
    InterruptRequest,
    PauseRequest,
    RefusedInput,
    Rejection,
    ResumeRequest,
    SpecChange,
    StateNote,
    StuckFinding,
    TurnFailure,
    UserMessage,
)
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


def to_event(item: InboxItem, at: str, spec: Agent) -> Event:
    """Translate an item into its event; `spec` is in force. See `rejection` for `Rejected`."""
    match item:
        case UserMessage():
            return _message_event(item, at)
        case PauseRequest():
            return PauseEvent(timestamp=at)
        case InterruptRequest():
            return InterruptEvent(timestamp=at)
        case ResumeRequest():
            return state_update(at, "status", "resumed", "user")
        case CloseRequest():
            return state_update(at, "status", "closed", "user")
        case CondenseRequest():
            return CondensationRequest(timestamp=at, source="user")
        case Approval():
            return state_update(at, "confirmed", list(item.actions), "user")
        case ConfirmationRequest():
            return state_update(at, "status", "waiting_for_confirmation")
        case SpecChange():
            changed = spec.model_dump(mode="json", exclude_none=True) | item.changes
            return state_update(at, "spec", changed, "user")
        case StateNote():
            return state_update(at, item.key, item.value, "user")
        case TurnFailure():
            return ConversationErrorEvent(timestamp=at, code=item.code, detail=item.detail)
        case RefusedInput():
            return state_update(at, "refused", item.detail)
        case AgentWarning():
            return _nudge_event(item, at)
        case StuckFinding():
            fields = item.model_dump(exclude={"kind"})
            return StuckEvent(timestamp=at, **fields)
        case Rejection():
            raise AssertionError("a rejection answers actions, each with an event of its own")


def rejection(action: ActionEvent, reason: str, at: str) -> UserRejectObservation:
    return UserRejectObservation(
        timestamp=at,
        action_id=action.id,
        tool_name=action.tool_name,
        tool_call_id=action.tool_call_id,
        rejection_reason=reason,
    )


def _message_event(item: UserMessage, at: str) -> MessageEvent:
    texts = (TextContent(text=item.text),) if item.text else ()
    images = (ImageContent(image_urls=item.images),) if item.images else ()
    return MessageEvent(
        timestamp=at,
        source="user",
        llm_message=Message(role="user", content=(*texts, *images)),
        message_id=item.message_id,
        sender=item.sender,
    )


def _nudge_event(item: AgentWarning, at: str) -> MessageEvent:
    return MessageEvent(
        timestamp=at,
        source="environment",
        llm_message=Message(role="user", content=(TextContent(text=item.text),)),
        sender=item.topic,
    )


def state_update(
    at: str, key: str, value: object, source: Source = "environment"
) -> ConversationStateUpdateEvent:
    return ConversationStateUpdateEvent(timestamp=at, source=source, key=key, value=value)
