"""The union of all events. A new kind is one class, one line here, one golden file."""

from contextlib import suppress
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from perdure.events.condensation import Condensation, CondensationRequest, CondensationSummaryEvent
from perdure.events.control import (
    ConversationErrorEvent,
    ConversationStateUpdateEvent,
    InterruptEvent,
    PauseEvent,
    SecurityAnalysisEvent,
    StuckEvent,
)
from perdure.events.custom import CustomEvent, parse_custom
from perdure.events.messages import MessageEvent, RecallEvent, SystemPromptEvent
from perdure.events.tools import (
    ActionEvent,
    AgentErrorEvent,
    ObservationEvent,
    UserRejectObservation,
)

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

    Its kind or some of its fields are newer than this version.
    """

    model_config = ConfigDict(frozen=True)

    id: str = ""
    timestamp: str = ""
    source: str = "environment"
    kind: str
    raw: dict[str, Any]


AnyEvent: TypeAlias = Event | UnknownEvent | CustomEvent
"""The events of a log, including those of newer writers and of other packages."""

ANSWERS = (ObservationEvent, AgentErrorEvent, UserRejectObservation)

_EVENTS: TypeAdapter[Event] = TypeAdapter(Event)


def parse_event(fields: dict[str, Any]) -> AnyEvent:
    """Parse an event; one that no class here and of no package can read is an `UnknownEvent`."""
    with suppress(ValueError):
        return _EVENTS.validate_python(fields)
    with suppress(ValueError):
        return parse_custom(CustomEvent, fields)
    known = {key: str(fields[key]) for key in ("id", "timestamp", "source") if key in fields}
    return UnknownEvent(kind=str(fields.get("kind", "")), raw=fields, **known)


def answered_action_id(event: AnyEvent) -> str | None:
    """Return the id of the action that the event answers, also if a newer version wrote it."""
    if isinstance(event, ANSWERS):
        return event.action_id
    if isinstance(event, UnknownEvent) and event.kind in {kind.__name__ for kind in ANSWERS}:
        action_id: Any = event.raw.get("action_id")
        return action_id if isinstance(action_id, str) else None
    return None


def dump_event(event: AnyEvent) -> dict[str, Any]:
    """Dump the event as JSON fields, without absent ones, for `parse_event` to read back."""
    if isinstance(event, UnknownEvent):
        return event.raw
    return event.model_dump(mode="json", exclude_none=True)
