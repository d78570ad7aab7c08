"""The union of all events. A new kind is one class, one line here, one golden file."""

from contextlib import suppress
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from perdure.events import condensation, control, messages, tools, waiting
from perdure.events.base import shorten_name
from perdure.events.content import join_text
from perdure.events.custom import CustomEvent, parse_custom
from perdure.events.observations import FinishObservation

Event: TypeAlias = Annotated[
    messages.SystemPromptEvent
    | messages.MessageEvent
    | tools.ActionEvent
    | tools.ObservationEvent
    | tools.UserRejectObservation
    | tools.AgentErrorEvent
    | condensation.CondensationRequest
    | condensation.Condensation
    | condensation.CondensationSummaryEvent
    | messages.RecallEvent
    | control.PauseEvent
    | control.InterruptEvent
    | control.SecurityAnalysisEvent
    | control.StuckEvent
    | control.ConversationStateUpdateEvent
    | control.ConversationErrorEvent
    | waiting.WaitEvent
    | waiting.QuestionEvent
    | waiting.SignalEvent,
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

    def state_changes(self) -> dict[str, Any]:
        """Return nothing: what it says of the session state cannot be told."""
        return {}

    def summary_fields(self) -> dict[str, Any]:
        """Return the ids that a newer writer's event has: of its action, its response.

        An action that cannot be read cannot be run here.
        """
        names = ("tool_name", "tool_call_id", "action_id", "llm_response_id", "message_id")
        known = {key: self.raw[key] for key in names if isinstance(self.raw.get(key), str)}
        fields: dict[str, Any] = {key: shorten_name(name) for key, name in known.items()}
        if self.kind == "ActionEvent":
            fields |= {"action_id": shorten_name(self.id), "is_error": True}
        return fields


AnyEvent: TypeAlias = Event | UnknownEvent | CustomEvent
"""The events of a log, including those of newer writers and of other packages."""

ANSWERS = (tools.ObservationEvent, tools.AgentErrorEvent, tools.UserRejectObservation)

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


def response_of(event: AnyEvent) -> tuple[str, str] | None:
    """Return the id and the time of the model's response that the event was made of."""
    fields = event.raw if isinstance(event, UnknownEvent) else {}
    response_id = fields.get("llm_response_id", getattr(event, "llm_response_id", None))
    return None if response_id is None else (str(response_id), event.timestamp)


def agent_text(event: AnyEvent) -> str:
    """Return the text of an agent's message or `finish` report; "" for every other event.

    A message that quotes an earlier one has no response of a model behind it and does not count,
    unless it is the part of an answer that an interrupt left.
    """
    match event:
        case messages.MessageEvent(source="agent", llm_response_id=None, sender=sender):
            return join_text(event.llm_message.content) if sender == "interrupted" else ""
        case messages.MessageEvent(source="agent"):
            return join_text(event.llm_message.content)
        case tools.ObservationEvent(observation=FinishObservation(content=content)):
            return join_text(content)
        case _:
            return ""


def dump_event(event: AnyEvent) -> dict[str, Any]:
    """Dump the event as JSON fields, without absent ones, for `parse_event` to read back."""
    if isinstance(event, UnknownEvent):
        return event.raw
    return event.model_dump(mode="json", exclude_none=True)
