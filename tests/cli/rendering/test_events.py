"""Events rendered as text."""

from typing import Any

import pytest

from perdure.cli.rendering.events import (
    MAX_LINE_CHARS,
    MAX_RESULT_LINES,
    describe_event,
    is_failure,
    shorten,
)
from perdure.events.event import parse_event

AT = "2025-01-01T10:00:00.000000"
CALL = {"tool_name": "t", "tool_call_id": "c"}


@pytest.mark.parametrize(
    ("fields", "source", "text_part", "failure"),
    [
        ({"kind": "FutureEvent", "mood": "good"}, "unknown", '"mood": "good"', False),
        ({"kind": "PauseEvent"}, "user", "paused", False),
        ({"kind": "InterruptEvent"}, "user", "interrupted", False),
        (
            {
                "kind": "ConversationStateUpdateEvent",
                "source": "environment",
                "key": "repository",
                "value": {"url": "https://h/a/b", "directory": "b", "commit": "0123456789ab"},
            },
            "system",
            "cloned https://h/a/b into b, at commit 01234567",
            False,
        ),
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
def test_every_event_is_described_by_its_source_and_text(
    fields: dict[str, Any], source: str, text_part: str, failure: bool
) -> None:
    event = parse_event({"id": "", "timestamp": AT, **fields})
    assert describe_event(event)[0] == source
    assert text_part in describe_event(event)[1]
    assert is_failure(event) is failure


def test_a_long_text_keeps_its_first_and_last_lines() -> None:
    text = "\n".join(f"line {number}" for number in range(100))
    lines = shorten(text).split("\n")
    assert len(lines) == MAX_RESULT_LINES + 1
    assert (lines[0], lines[-1]) == ("line 0", "line 99")
    assert (
        lines[MAX_RESULT_LINES // 2]
        == f"[... {100 - MAX_RESULT_LINES} more lines; --full shows them ...]"
    )
    assert shorten("x" * 10_000) == "x" * MAX_LINE_CHARS + " [... 9,600 more characters ...]"
