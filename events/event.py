"""Every event there is. A new kind is one class, one line here, one golden file."""

from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from events.condensation import Condensation, CondensationRequest, CondensationSummaryEvent
from events.control import (
    ConversationErrorEvent,
    ConversationStateUpdateEvent,
    InterruptEvent,
    PauseEvent,
    SecurityAnalysisEvent,
    StuckEvent,
)
from events.messages import MessageEvent, RecallEvent, SystemPromptEvent
from events.tools import ActionEvent, AgentErrorEvent, ObservationEvent, UserRejectObservation

Event: TypeAlias = Annotated[
    SystemPromptEvent
    | MessageEvent
    | ActionEvent
    | ObservationEvent
    | UserRejectObservation
    | AgentErrorEvent
    | CondensationRequest
    | Condensation
    | CondensationSummaryEvent
    | RecallEvent
    | PauseEvent
    | InterruptEvent
    | SecurityAnalysisEvent
    | StuckEvent
    | ConversationStateUpdateEvent
    | ConversationErrorEvent,
    Field(discriminator="kind"),
]


class UnknownEvent(BaseModel):
    """An event that this version cannot read: kept as it came, shown, never dropped or rewritten.

    Its kind is new, or it has fields that are.
    """

    model_config = ConfigDict(frozen=True)

    id: str = ""
    timestamp: str = ""
    source: str = "environment"
    kind: str
    raw: dict[str, Any]


AnyEvent: TypeAlias = Event | UnknownEvent
"""What a log may hold: events, and those of a newer writer."""

_EVENTS: TypeAdapter[Event] = TypeAdapter(Event)


def event_from(fields: dict[str, Any]) -> AnyEvent:
    """The event that these JSON fields are; an `UnknownEvent` where they are none of ours."""
    try:
        return _EVENTS.validate_python(fields)
    except ValidationError:
        known = {key: str(fields[key]) for key in ("id", "timestamp", "source") if key in fields}
        return UnknownEvent(kind=str(fields.get("kind", "")), raw=fields, **known)


def fields_of(event: AnyEvent) -> dict[str, Any]:
    """The event as JSON fields, without those that are absent; what `event_from` reads back."""
    if isinstance(event, UnknownEvent):
        return event.raw
    return event.model_dump(mode="json", exclude_none=True)
