"""Tool calls and their results."""

import operator
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, JsonValue

from perdure.events.actions import FileEditorAction, IPythonRunCellAction, TerminalAction
from perdure.events.base import ActorEvent, EventBase, Source, hash_text, shorten_name
from perdure.events.content import AnyThinkingBlock, MessageToolCall, TextContent, join_text
from perdure.events.custom import AnyAction, AnyObservation
from perdure.events.observations import FinishObservation
from perdure.events.risk import Risk
from perdure.events.summary import NO_RUN

ToolErrorKind: TypeAlias = Literal[
    "unknown_tool",
    "bad_arguments",
    "too_many_calls",
    "tool_raised",
    "outcome_unknown",
    "interrupted",
]

StateChanges: TypeAlias = Annotated[
    dict[str, JsonValue] | None, Field(exclude_if=lambda changes: changes is None)
]

WaitEnding: TypeAlias = Literal["time", "signal", "answer", "message"]
"""What ends a wait: its time, the signal or the answer it was for, or a message of the user."""

REJECT_TOOL = "reject_task"
"""The tool by which an agent refuses its task."""

MAX_REASON_CHARS = 500  # of a refusal in its summary
MAX_PREVIEW_CHARS = 40  # as wide as the column in Temporal's UI
MAX_RESOURCES = 8
"""Resources of an action; those of an action with more count as unknown."""


class ActionEvent(EventBase):
    """The agent asked for one tool call.

    All actions of one `llm_response_id` were one response of the model, and become one message
    again.
    """

    source: Source = "agent"
    kind: Literal["ActionEvent"] = "ActionEvent"
    thought: tuple[TextContent, ...] = ()
    reasoning_content: str | None = None
    thinking_blocks: tuple[AnyThinkingBlock, ...] = ()
    action: AnyAction | None = None
    """The validated arguments, or None if validation failed."""
    tool_name: str
    tool_call_id: str
    tool_call: MessageToolCall
    llm_response_id: str
    security_risk: Risk = "UNKNOWN"
    summary: str | None = None
    touches: tuple[str, ...] | None = None
    """The resources that the call reads or changes (`file:src/main.py`), or None if they are
    unknown: calls with different resources may run side by side.
    """

    def summary_fields(self) -> dict[str, Any]:
        return {
            "tool_name": shorten_name(self.tool_name),
            "tool_call_id": shorten_name(self.tool_call_id),
            "action_id": shorten_name(self.id),
            # The hash distinguishes the responses of the model; nothing else needs the id.
            "llm_response_id": hash_text(self.llm_response_id)[:12],
            "risk": None if self.security_risk == "UNKNOWN" else self.security_risk,
            "is_error": self.action is None or None,
            "resources": self._resource_hashes(),
            "preview": self._preview(),
        }

    def _resource_hashes(self) -> tuple[str, ...] | None:
        if self.touches is None or len(self.touches) > MAX_RESOURCES:
            return None
        return tuple(map(hash_text, self.touches))

    def _preview(self) -> str | None:
        match self.action:
            case TerminalAction(command=command):
                text = command
            case IPythonRunCellAction(code=code):
                text = code
            case FileEditorAction(command=command, path=path):
                text = f"{command} {path}"
            case _:
                return None
        line = text.strip().partition("\n")[0]
        return line if len(line) <= MAX_PREVIEW_CHARS else f"{line[: MAX_PREVIEW_CHARS - 1]}…"


class ObservationEvent(EventBase):
    """A tool returned."""

    kind: Literal["ObservationEvent"] = "ObservationEvent"
    action_id: str
    tool_name: str
    tool_call_id: str
    observation: AnyObservation
    state: StateChanges = None
    """What the call has changed of the session state, by key; None deletes a value."""
    ended_by: WaitEnding | None = Field(default=None, exclude_if=operator.not_)
    """What ended the wait that the call was."""
    actor: str | None = Field(default=None, exclude_if=operator.not_)
    """Who answered the question that the call was, as far as that is known."""

    def state_changes(self) -> Mapping[str, Any]:
        return self.state or {}

    def export_note(self) -> str:
        """Describe a result that came too late, or to no call."""
        return f"A late result of {self.tool_name}: {join_text(self.observation.content)}"

    def summary_fields(self) -> dict[str, Any]:
        fields = _result_fields(self, is_error=self.observation.is_error)
        if self.ended_by is not None:
            return fields | {"key": self.ended_by}
        if self.tool_name != REJECT_TOOL or not isinstance(self.observation, FinishObservation):
            return fields
        reason = join_text(self.observation.content)[:MAX_REASON_CHARS]
        return fields | {"key": "rejected", "value": reason}


class UserRejectObservation(ActorEvent):
    """A person rejected an action."""

    source: Source = "user"
    kind: Literal["UserRejectObservation"] = "UserRejectObservation"
    action_id: str
    tool_name: str
    tool_call_id: str
    rejection_reason: str
    run: bool | None = None
    """False where the agent rests after it."""

    def describe(self) -> tuple[str, str]:
        return "user", f"rejected {self.tool_name}: {self.rejection_reason}"

    def export_note(self) -> str:
        """Describe a rejection that came too late."""
        return f"A late rejection of {self.tool_name}: {self.rejection_reason}"

    def summary_fields(self) -> dict[str, Any]:
        fields = _result_fields(self)
        return fields | {"key": NO_RUN} if self.run is False else fields


class AgentErrorEvent(EventBase):
    """A tool call, that of `action_id`, failed in a way that the model can correct."""

    source: Source = "agent"
    kind: Literal["AgentErrorEvent"] = "AgentErrorEvent"
    error: str
    tool_name: str
    tool_call_id: str
    action_id: str | None = None
    classification: ToolErrorKind
    state: StateChanges = None
    """The shared values that the call has changed before it failed."""

    def state_changes(self) -> Mapping[str, Any]:
        return self.state or {}

    def export_note(self) -> str:
        """Describe an error that came too late, or to no call."""
        return f"A late error of {self.tool_name}: {self.error}"

    def summary_fields(self) -> dict[str, Any]:
        return _result_fields(self, is_error=True)


def _result_fields(
    event: ObservationEvent | AgentErrorEvent | UserRejectObservation, is_error: bool = False
) -> dict[str, Any]:
    return {
        "tool_name": shorten_name(event.tool_name),
        "action_id": None if event.action_id is None else shorten_name(event.action_id),
        "is_error": is_error or None,
    }
