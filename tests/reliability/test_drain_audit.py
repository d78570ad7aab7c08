"""The audit of drained workers finds a step that was lost or run twice."""

from collections import Counter

import pytest

from perdure.events.actions import MCPToolAction
from perdure.events.content import MessageToolCall, TextContent
from perdure.events.observations import MCPToolObservation
from perdure.events.tools import ActionEvent, AgentErrorEvent, ObservationEvent, ToolErrorKind
from reliability.drain.audit import audit_call, audit_conversation
from reliability.drain.workers import Drain

ACTION, NOW = "11111111-1111-4111-8111-111111111111", "2026-11-26T12:00:00.000000"


def action(tool: str, seconds: float) -> ActionEvent:
    arguments = f'{{"number": 1, "seconds": {seconds}}}'
    return ActionEvent(
        id=ACTION,
        timestamp=NOW,
        action=MCPToolAction(data={}),
        tool_name=tool,
        tool_call_id="call",
        tool_call=MessageToolCall(id="call", name=tool, arguments=arguments),
        llm_response_id="response",
    )


def answer(tool: str) -> ObservationEvent:
    observation = MCPToolObservation(tool_name=tool, content=(TextContent(text="done"),))
    return ObservationEvent(
        timestamp=NOW,
        tool_name=tool,
        tool_call_id="call",
        action_id=ACTION,
        observation=observation,
    )


def error(tool: str, kind: ToolErrorKind) -> AgentErrorEvent:
    return AgentErrorEvent(
        timestamp=NOW,
        tool_name=tool,
        tool_call_id="call",
        action_id=ACTION,
        error="no",
        classification=kind,
    )


@pytest.mark.parametrize(
    ("tool", "seconds", "outcome", "runs", "is_right"),
    [
        ("charge", 7.5, "done", 1, True),
        ("charge", 7.5, "done", 0, False),
        ("charge", 7.5, "done", 2, False),
        ("look", 7.5, "done", 2, False),
        ("charge", 7.5, "interrupted", 1, False),
        ("charge", 7.5, "outcome_unknown", 1, False),
        ("charge", 80.0, "interrupted", 1, True),
        ("charge", 80.0, "interrupted", 0, True),
        ("charge", 80.0, "interrupted", 2, False),
        ("charge", 80.0, "done", 2, False),
        ("look", 80.0, "done", 2, True),
        ("look", 80.0, "interrupted", 1, False),
    ],
)
def test_a_call_is_right_if_it_took_effect_once_or_was_cut_off_and_told(
    tool: str, seconds: float, outcome: str, runs: int, is_right: bool
) -> None:
    event = answer(tool) if outcome == "done" else error(tool, outcome)  # type: ignore[arg-type]
    findings = audit_call(action(tool, seconds), event, runs, Counter())
    assert bool(findings) != is_right


def test_a_call_without_an_answer_and_a_conversation_that_is_too_short_are_found() -> None:
    findings = audit_conversation([action("charge", 7.5)], Counter(), Counter())
    assert findings == ["1 actions, not 8", "charge has 0 answers"]


def test_a_worker_that_is_late_fails_or_was_idle_is_found() -> None:
    assert Drain(0, 19.0, 60, 3).describe_faults(50) == []
    faults = Drain(1, 45.0, 10, 3).describe_faults(50)
    assert faults == [
        "a worker exited with 1",
        "a worker took 45.0 s",
        "only 10 steps were at work",
    ]
