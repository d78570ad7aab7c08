"""The tool calls of a stored log, with their answers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from examples.bfcl.objects import StoredEvent


@dataclass(frozen=True)
class AnsweredCall:
    """A call that a log has, with its answer, whatever that is."""

    action: StoredEvent
    answer: StoredEvent

    @property
    def tool(self) -> str:
        return str(self.action.fields.get("tool_name"))

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments of a tool whose action is only these."""
        return dict(self.action.fields["action"].get("data") or {})

    @property
    def succeeded(self) -> bool:
        observation = self.answer.fields.get("observation") or {}
        return self.answer.kind == "ObservationEvent" and not observation.get("is_error")

    @property
    def text(self) -> str:
        """The text of the observation."""
        content = (self.answer.fields.get("observation") or {}).get("content") or []
        return "\n".join(str(part.get("text", "")) for part in content)


def list_actions(events: Sequence[StoredEvent], *tools: str) -> list[StoredEvent]:
    """List the calls of some tools, answered or not."""
    actions = (event for event in events if event.kind == "ActionEvent")
    return [action for action in actions if action.fields.get("tool_name") in tools]


def answered_calls(events: Sequence[StoredEvent], *tools: str) -> Iterator[AnsweredCall]:
    """Yield the calls of some tools in the order of their answers."""
    actions = {action.id: action for action in list_actions(events, *tools)}
    for event in events:
        if action := actions.get(str(event.fields.get("action_id"))):
            yield AnsweredCall(action, event)


def successful_calls(events: Sequence[StoredEvent], *tools: str) -> Iterator[AnsweredCall]:
    return (call for call in answered_calls(events, *tools) if call.succeeded)
