"""Building the events of steps, which for an inbox item follow from the item."""

from typing import Any, TypeAlias

from perdure.agent.layers import change_sources
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
from perdure.events.waiting import SignalEvent

CONFIGURED = "configure"
"""The source of an agent's fields that somebody changed while its conversation went on."""


StateItem: TypeAlias = (
    inbox.ResumeRequest
    | inbox.CloseRequest
    | inbox.Approval
    | inbox.ConfirmationRequest
    | inbox.SpecChange
    | inbox.StateNote
    | inbox.RefusedInput
    | inbox.WebhookFailure
)
"""The items that are recorded as updates of the conversation's state."""


def to_event(item: inbox.InboxItem, at: str, spec: Agent) -> Event:
    """Translate an item into its event; `spec` is in force."""
    match item:
        case inbox.UserMessage():
            return _message_event(item, at)
        case inbox.PauseRequest():
            return PauseEvent(timestamp=at, actor=item.actor)
        case inbox.InterruptRequest():
            source: Source = "user" if item.reason is None else "environment"
            return InterruptEvent(timestamp=at, source=source, reason=item.reason, actor=item.actor)
        case inbox.CondenseRequest():
            return CondensationRequest(timestamp=at, source="user", actor=item.actor)
        case inbox.TurnFailure():
            return error_event(at, item.code, item.detail)
        case inbox.AgentWarning():
            warning = inbox.UserMessage(text=item.text, sender=item.topic)
            return _message_event(warning, at, "environment")
        case inbox.StuckFinding():
            return StuckEvent(timestamp=at, **item.model_dump(exclude={"kind"}))
        case inbox.Signal():
            return SignalEvent(timestamp=at, **item.model_dump(exclude={"kind"}))
        case inbox.Rejection() | inbox.WaitStart() | inbox.WaitEnd() | inbox.Answer():
            raise AssertionError("what answers actions, or begins a wait, is made of their events")
        case _:
            return _state_event(item, at, spec)


def _state_event(item: StateItem, at: str, spec: Agent) -> ConversationStateUpdateEvent:
    match item:
        case inbox.ResumeRequest():
            return state_update(at, "status", "resumed", "user", item.actor)
        case inbox.CloseRequest():
            return state_update(at, "status", "closed", "user", item.actor)
        case inbox.Approval():
            return state_update(at, "confirmed", list(item.actions), "user", item.actor)
        case inbox.ConfirmationRequest():
            return state_update(at, "status", "waiting_for_confirmation")
        case inbox.SpecChange():
            changed = _change_spec(spec, item.changes)
            return state_update(at, "spec", changed, "user", item.actor)
        case inbox.StateNote():
            return state_update(at, item.key, item.value, "user", item.actor)
        case inbox.RefusedInput():
            return state_update(at, "refused", item.detail)
        case inbox.WebhookFailure():
            return state_update(at, "webhook_failed", item.model_dump(exclude={"kind"}))


def _change_spec(spec: Agent, changes: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a changed agent, with their sources."""
    before = spec.model_dump(mode="json", exclude_none=True)
    sources = change_sources(spec.sources, before, changes, CONFIGURED)
    return {**before, **changes, **({"sources": sources} if spec.sources else {})}


def rejection(
    action: ActionEvent, reason: str, at: str, actor: str | None = None, run: bool = True
) -> UserRejectObservation:
    return UserRejectObservation(
        **answer_fields(action, at),
        rejection_reason=reason,
        actor=actor,
        run=None if run else False,
    )


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
        actor=item.actor,
        traceparent=item.traceparent,
        reopen=item.reopen or None,
        run=None if item.run else False,
    )


def state_update(
    at: str,
    key: str,
    value: object,
    source: Source = "environment",
    actor: str | None = None,
) -> ConversationStateUpdateEvent:
    return ConversationStateUpdateEvent(
        timestamp=at, source=source, key=key, value=value, actor=actor
    )


def error_event(at: str, code: str, detail: str) -> ConversationErrorEvent:
    return ConversationErrorEvent(timestamp=at, code=code, detail=detail)
