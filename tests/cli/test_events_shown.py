"""Events as a person reads them."""

from typing import Any

import pytest

from cli.events_shown import LINES, WIDTH, is_failure, shortened, told
from events.event import event_from

AT = "2025-01-01T10:00:00.000000"
CALL = {"tool_name": "t", "tool_call_id": "c"}


@pytest.mark.parametrize(
    ("fields", "who", "said", "failure"),
    [
        ({"kind": "FutureEvent", "mood": "good"}, "unknown", '"mood": "good"', False),
        ({"kind": "PauseEvent"}, "user", "paused", False),
        ({"kind": "InterruptEvent"}, "user", "interrupted", False),
        (
            {"kind": "Condensation", "summary": "All."},
            "system",
            "0 events out of view\nAll.",
            False,
        ),
        (
            {
                "kind": "StuckEvent",
                "pattern": "monologue",
                "first_seq": 4,
                "last_seq": 6,
                "count": 3,
            },
            "system",
            "stuck: monologue, 3 times, events 4 to 6",
            True,
        ),
        (
            {"kind": "RecallEvent", "recall_type": "KNOWLEDGE", "query": "q", "content": "Do so."},
            "recalled",
            "Do so.",
            False,
        ),
        (
            {"kind": "ConversationErrorEvent", "code": "auth", "detail": "Set a key."},
            "error",
            "auth: Set a key.",
            True,
        ),
        (
            {"kind": "AgentErrorEvent", "error": "No.", "classification": "unknown_tool", **CALL},
            "t",
            "unknown_tool: No.",
            True,
        ),
        (
            {
                "kind": "ActionEvent",
                "tool_call": {"id": "c", "name": "t", "arguments": "{oops"},
                "llm_response_id": "r",
                **CALL,
            },
            "agent",
            "t {oops (cannot be run)",
            False,
        ),
        (
            {"kind": "UserRejectObservation", "action_id": "a", "rejection_reason": "Ask", **CALL},
            "user",
            "rejected t: Ask",
            True,
        ),
        (
            {"kind": "ConversationStateUpdateEvent", "key": "status", "value": "closed"},
            "system",
            "status: closed",
            False,
        ),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else None,
)
def test_every_event_says_who_and_what(
    fields: dict[str, Any], who: str, said: str, failure: bool
) -> None:
    event = event_from({"id": "", "timestamp": AT, **fields})
    assert told(event)[0] == who
    assert said in told(event)[1]
    assert is_failure(event) is failure


def test_a_long_text_keeps_its_head_and_its_tail() -> None:
    text = "\n".join(f"line {number}" for number in range(100))
    lines = shortened(text).split("\n")
    assert len(lines) == LINES + 1
    assert (lines[0], lines[-1]) == ("line 0", "line 99")
    assert lines[LINES // 2] == f"[... {100 - LINES} more lines ...]"
    assert len(shortened("x" * 10_000)) < WIDTH + 10
