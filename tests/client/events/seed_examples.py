"""The seed's own examples of events, as it writes them in Python and in JSON."""

from typing import Any

from pydantic import BaseModel

from perdure import (
    ActionEvent,
    Condensation,
    Message,
    MessageEvent,
    ObservationEvent,
    TextContent,
    make_event,
)
from perdure.events.event import AnyEvent


class WriteFileAction(BaseModel):
    """An action of a tool that perdure does not know."""

    path: str
    content: str


class WriteFileObservation(BaseModel):
    success: bool
    message: str | None = None


def make_seed_events() -> list[AnyEvent]:
    """Make the seed's list of events (section 1.2)."""
    return [
        make_event(
            MessageEvent,
            id="evt-001",
            source="user",
            timestamp="2025-01-15T10:00:00",
            llm_message=Message(role="user", content=[TextContent(text="帮我写个程序")]),
        ),
        make_event(
            ActionEvent,
            id="evt-002",
            source="agent",
            timestamp="2025-01-15T10:00:01",
            thought=[TextContent(text="我需要创建文件")],
            action=WriteFileAction(path="test.py", content="..."),
            tool_name="FileEditorTool",
            tool_call_id="call-123",
            llm_response_id="resp-456",
        ),
        make_event(
            ObservationEvent,
            id="evt-003",
            source="environment",
            timestamp="2025-01-15T10:00:02",
            action_id="evt-002",
            tool_name="FileEditorTool",
            tool_call_id="call-123",
            observation=WriteFileObservation(success=True),
        ),
    ]


def make_seed_condensation() -> Condensation:
    return make_event(
        Condensation,
        forgotten_event_ids=["evt-010", "evt-011", "evt-050"],
        summary="用户请求创建了多个文件",
        summary_offset=4,
    )


SEED_FILES: dict[str, dict[str, Any]] = {
    "000000_evt-user-msg-1.json": {
        "kind": "MessageEvent",
        "id": "evt-user-msg-1",
        "source": "user",
        "timestamp": "2025-01-15T10:00:00.123",
        "llm_message": {
            "role": "user",
            "content": [{"type": "text", "text": "创建一个 Python 文件"}],
        },
        "activated_microagents": ["files"],
        "extended_content": [],
    },
    "000001_evt-action-1.json": {
        "kind": "ActionEvent",
        "id": "evt-action-1",
        "source": "agent",
        "timestamp": "2025-01-15T10:00:01.456",
        "thought": [{"type": "text", "text": "我需要创建一个文件"}],
        "action": {"kind": "WriteFileAction", "path": "test.py", "content": "print('hello')"},
        "tool_name": "FileEditorTool",
        "tool_call_id": "call-xyz789",
        "tool_call": {
            "id": "call-xyz789",
            "type": "function",
            "function": {"name": "FileEditorTool", "arguments": '{"path": "test.py"}'},
        },
        "llm_response_id": "resp-abc123",
    },
    "000002_evt-obs-1.json": {
        "kind": "ObservationEvent",
        "id": "evt-obs-1",
        "source": "environment",
        "timestamp": "2025-01-15T10:00:02.789",
        "action_id": "evt-action-1",
        "tool_name": "FileEditorTool",
        "tool_call_id": "call-xyz789",
        "observation": {
            "kind": "WriteFileObservation",
            "success": True,
            "message": "File created: test.py",
        },
    },
    "000003_evt-error-1.json": {
        "kind": "AgentErrorEvent",
        "id": "evt-error-1",
        "source": "agent",
        "timestamp": "2025-01-15T10:00:03Z",
        "error": "Tool 'fly' not found. Available: ['FileEditorTool']",
        "tool_name": "fly",
        "tool_call_id": "call-000",
    },
    "000150_evt-condensation-1.json": {
        "kind": "Condensation",
        "id": "evt-condensation-1",
        "source": "environment",
        "timestamp": "2025-01-15T10:05:00",
        "forgotten_event_ids": ["evt-004", "evt-005", "evt-094"],
        "summary": "用户请求创建了多个文件",
        "summary_offset": 4,
    },
}
"""The files of the seed's folder `events/` (sections 4.2 and 4.3)."""
