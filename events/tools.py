"""Deeds: what the agent asked for, and what came of it."""

from typing import Literal, TypeAlias

from events.actions import Action
from events.base import EventBase, Source
from events.content import AnyThinkingBlock, MessageToolCall, TextContent
from events.observations import Observation
from events.risk import Risk

ToolErrorKind: TypeAlias = Literal[
    "unknown_tool", "bad_arguments", "tool_raised", "outcome_unknown", "interrupted"
]


class ActionEvent(EventBase):
    """The agent asked for one tool call.

    `action` holds the validated arguments, or nothing where they could not be validated. All
    actions of one `llm_response_id` were one answer of the model, and become one message again.
    `touches` names what the call reads or changes (`file:src/main.py`): calls that touch different
    things may run side by side. None: it cannot be told.
    """

    source: Source = "agent"
    kind: Literal["ActionEvent"] = "ActionEvent"
    thought: tuple[TextContent, ...] = ()
    reasoning_content: str | None = None
    thinking_blocks: tuple[AnyThinkingBlock, ...] = ()
    action: Action | None = None
    tool_name: str
    tool_call_id: str
    tool_call: MessageToolCall
    llm_response_id: str
    security_risk: Risk = "UNKNOWN"
    summary: str | None = None
    touches: tuple[str, ...] | None = None


class ObservationEvent(EventBase):
    """A tool returned."""

    source: Source = "environment"
    kind: Literal["ObservationEvent"] = "ObservationEvent"
    action_id: str
    tool_name: str
    tool_call_id: str
    observation: Observation


class UserRejectObservation(EventBase):
    """A person did not let an action happen."""

    source: Source = "user"
    kind: Literal["UserRejectObservation"] = "UserRejectObservation"
    action_id: str
    tool_name: str
    tool_call_id: str
    rejection_reason: str


class AgentErrorEvent(EventBase):
    """A tool call came to nothing, in a way that the model can mend.

    `action_id` names the action that this answers.
    """

    source: Source = "agent"
    kind: Literal["AgentErrorEvent"] = "AgentErrorEvent"
    error: str
    tool_name: str
    tool_call_id: str
    action_id: str | None = None
    classification: ToolErrorKind
