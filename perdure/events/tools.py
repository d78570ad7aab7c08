"""Tool calls and their results."""

from typing import Literal, TypeAlias

from perdure.events.base import EventBase, Source
from perdure.events.content import AnyThinkingBlock, MessageToolCall, TextContent, join_text
from perdure.events.custom import AnyAction, AnyObservation
from perdure.events.risk import Risk

ToolErrorKind: TypeAlias = Literal[
    "unknown_tool", "bad_arguments", "tool_raised", "outcome_unknown", "interrupted"
]


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


class ObservationEvent(EventBase):
    """A tool returned."""

    source: Source = "environment"
    kind: Literal["ObservationEvent"] = "ObservationEvent"
    action_id: str
    tool_name: str
    tool_call_id: str
    observation: AnyObservation

    def export_note(self) -> str:
        """Describe a result that came too late, or to no call."""
        return f"A late result of {self.tool_name}: {join_text(self.observation.content)}"


class UserRejectObservation(EventBase):
    """A person rejected an action."""

    source: Source = "user"
    kind: Literal["UserRejectObservation"] = "UserRejectObservation"
    action_id: str
    tool_name: str
    tool_call_id: str
    rejection_reason: str

    def describe(self) -> tuple[str, str]:
        return "user", f"rejected {self.tool_name}: {self.rejection_reason}"

    def export_note(self) -> str:
        """Describe a rejection that came too late."""
        return f"A late rejection of {self.tool_name}: {self.rejection_reason}"


class AgentErrorEvent(EventBase):
    """A tool call failed in a way that the model can correct.

    `action_id` names the action that this answers.
    """

    source: Source = "agent"
    kind: Literal["AgentErrorEvent"] = "AgentErrorEvent"
    error: str
    tool_name: str
    tool_call_id: str
    action_id: str | None = None
    classification: ToolErrorKind

    def export_note(self) -> str:
        """Describe an error that came too late, or to no call."""
        return f"A late error of {self.tool_name}: {self.error}"
