"""The events of a discussion, as the specification writes them."""
# ruff: noqa: RUF001 - its examples are Chinese

import json
from typing import Any

import pytest
from pydantic import ValidationError

from perdure.events.discussion import (
    MAX_CONTENT_BYTES,
    AgentVisibleEvent,
    DiscussionEvent,
    system_content,
)

SPEECH = """{
    "eventId": "evt-a1b2c3d4",
    "type": "SPEECH",
    "speaker": "agent-1",
    "content": "从技术角度来看，这个方案存在以下优势：首先，架构简洁清晰...",
    "timestamp": "2024-12-23T12:30:00.000Z",
    "sessionId": "session-123",
    "sequence": 15,
    "meta": {
        "round": 2,
        "tokens": 128
    }
}"""
SUMMARY = """{
    "eventId": "evt-e5f6g7h8",
    "type": "SUMMARY",
    "speaker": "moderator",
    "content": "第一阶段讨论总结：双方就技术可行性达成初步共识，但在成本控制方面存在分歧...",
    "timestamp": "2024-12-23T12:35:00.000Z",
    "sessionId": "session-123",
    "sequence": 30,
    "meta": {
        "phase": "phase-1-end"
    }
}"""
SYSTEM = """{
    "eventId": "evt-i9j0k1l2",
    "type": "SYSTEM",
    "speaker": "system",
    "content": {
        "action": "PHASE_TRANSITION",
        "details": {
            "from": "opening",
            "to": "discussion"
        }
    },
    "timestamp": "2024-12-23T12:25:00.000Z",
    "sessionId": "session-123",
    "sequence": 5
}"""


def speech(**changes: Any) -> DiscussionEvent:
    return DiscussionEvent.model_validate({**json.loads(SPEECH), **changes})


@pytest.mark.parametrize("text", [SPEECH, SUMMARY, SYSTEM])
def test_an_example_of_the_specification_is_read_and_written_letter_for_letter(text: str) -> None:
    event = DiscussionEvent.model_validate_json(text)
    assert json.dumps(event.to_json(), ensure_ascii=False, indent=4) == text


def test_both_spellings_are_read() -> None:
    camel = speech(meta={"replyTo": "evt-1", "round": 2})
    snake = DiscussionEvent(
        event_id="evt-a1b2c3d4",
        type="SPEECH",
        speaker="agent-1",
        content=camel.content,
        timestamp="2024-12-23T12:30:00.000Z",
        session_id="session-123",
        sequence=15,
        meta={"reply_to": "evt-1", "round": 2},
    )
    assert camel == snake
    assert camel.to_json()["meta"] == {"round": 2, "replyTo": "evt-1"}


def test_other_metadata_is_kept() -> None:
    assert speech(meta={"mood": {"calm": 1}}).to_json()["meta"] == {"mood": {"calm": 1}}


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("2024-12-23T12:30:00Z", "2024-12-23T12:30:00.000Z"),
        ("2024-12-23T12:30:00.123456", "2024-12-23T12:30:00.123Z"),
        ("2024-12-23T12:30:00.5+00:00", "2024-12-23T12:30:00.500Z"),
    ],
)
def test_a_timestamp_has_milliseconds_and_a_z(written: str, kept: str) -> None:
    assert speech(timestamp=written).timestamp == kept


@pytest.mark.parametrize(
    "wrong",
    [
        {"timestamp": "2024-12-23T12:30:00.000+02:00"},
        {"type": "SHOUT"},
        {"sequence": 0},
        {"speaker": ""},
        {"sessionId": "../other"},
        {"eventId": "two words"},
        {"content": "x" * (MAX_CONTENT_BYTES + 1)},
        {"content": 7},
        {"mood": "calm"},
    ],
)
def test_what_is_no_event_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        speech(**wrong)


def test_an_agent_sees_four_fields_and_text() -> None:
    event = DiscussionEvent.model_validate_json(SYSTEM)
    assert AgentVisibleEvent.from_event(event).model_dump() == {
        "type": "SYSTEM",
        "speaker": "system",
        "content": ('{"action":"PHASE_TRANSITION","details":{"from":"opening","to":"discussion"}}'),
        "timestamp": "2024-12-23T12:25:00.000Z",
    }


def test_only_a_system_event_has_an_action() -> None:
    content = system_content("GRANT", speaker="agent-1")
    system = speech(type="SYSTEM", speaker="system", content=content)
    assert (system.action, system.details) == ("GRANT", {"speaker": "agent-1"})
    assert speech(content=content).action is None
