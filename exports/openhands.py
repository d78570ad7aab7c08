"""Events as the models of the OpenHands SDK read them, version 1.58.

Each event stays one event, at its place and under its id: what a condensation forgot, and where
its summary stands, hold there as here. A kind that they have keeps its fields, but for those that
are ours alone. A kind that they lack is told by one of theirs:

* `RecallEvent`: a message from the environment, which they join to the user's message before it
* `StuckEvent`: an update of `stuck`
* `UnknownEvent`: an update of what its kind is called, with all that it holds

A tool is told as their own of that name, which brings its parameters along, or else as an MCP tool.
Their models know the tools, actions and observations once `openhands.tools` has been imported.
"""

from collections.abc import Iterable
from typing import Any

from events.condensation import Condensation
from events.content import Message, TextContent, ToolDefinition
from events.control import ConversationErrorEvent, StuckEvent
from events.event import AnyEvent, UnknownEvent
from events.messages import MessageEvent, RecallEvent, SystemPromptEvent
from events.tools import AgentErrorEvent

OURS = {"touches", "message_id", "forgotten_seqs", "forgotten_size", "summary_size"}
"""Fields that none of their events has."""

CLASSES = {
    "terminal": "Terminal",
    "file_editor": "FileEditor",
    "task_tracker": "TaskTracker",
    "think": "Think",
    "finish": "Finish",
}
"""What the names of a tool's classes begin with, by the name of the tool."""

FAILURES = {
    "auth": ("auth",),
    "quota": ("quota", "max_iterations", "max_budget", "max_tokens", "max_events", "deadline"),
    "rate_limit": ("rate_limit",),
    "config": ("model_not_found", "bad_request", "tool_not_found"),
    "transient": ("overloaded", "timeout", "connection", "malformed"),
    "agent_action": ("unknown_tool", "bad_arguments", "interrupted", "context_overflow"),
    "internal": ("internal", "tool_raised"),
}
"""The kinds of failure that they tell apart, each with our codes for it."""

SETTLED = ("auth", "quota", "config")
"""Kinds of failure that the user ends in the settings."""

RETRIED = ("rate_limit", "transient", "agent_action")
"""Kinds of failure that may be gone the next time."""


def openhands_events(events: Iterable[AnyEvent]) -> list[dict[str, Any]]:
    """The JSON objects of a whole log: one for each event."""
    return [openhands_event(event) for event in events]


def openhands_event(event: AnyEvent) -> dict[str, Any]:
    """The JSON object that `Event.model_validate` of openhands-sdk reads."""
    match event:
        case UnknownEvent():
            return _update(event, event.kind, event.raw)
        case StuckEvent():
            found = event.model_dump(include={"pattern", "first_seq", "last_seq", "count"})
            return _update(event, "stuck", found)
        case RecallEvent():
            return openhands_event(_message(event))
        case SystemPromptEvent():
            return _fields(event) | {"tools": [_tool(tool) for tool in event.tools]}
        case AgentErrorEvent():
            failure = _failure(event.classification)
            return _fields(event, "action_id") | {"classification": failure}
        case ConversationErrorEvent():
            return _fields(event) | {"classification": _failure(event.code)}
        case Condensation():
            # No answer of a model stands behind what was merely cut off, and they ask for an id.
            return _fields(event) | {"llm_response_id": event.llm_response_id or ""}
        case _:
            return _fields(event)


def _fields(event: AnyEvent, *ours: str) -> dict[str, Any]:
    """All fields, also those that are absent: some of theirs have to be there, if only as null."""
    return event.model_dump(mode="json", exclude={*OURS, *ours})


def _update(event: StuckEvent | UnknownEvent, key: str, value: Any) -> dict[str, Any]:
    return {
        "id": event.id,
        "timestamp": event.timestamp,
        "source": "environment",
        "kind": "ConversationStateUpdateEvent",
        "key": key,
        "value": value,
    }


def _message(event: RecallEvent) -> MessageEvent:
    content = (TextContent(text=event.content),) if event.content else ()
    return MessageEvent(
        id=event.id,
        timestamp=event.timestamp,
        source=event.source,
        llm_message=Message(role="user", content=content),
        activated_skills=event.skills,
        sender="recall",
    )


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    hints = tool.annotations.model_dump()
    told = {"description": tool.description, "annotations": hints}
    if name := CLASSES.get(tool.name):
        return told | _classes(f"{name}Tool", name)
    offered = {"name": tool.name, "inputSchema": tool.parameters}
    return told | _classes("MCPToolDefinition", "MCPTool") | {"mcp_tool": told | offered}


def _classes(kind: str, name: str) -> dict[str, Any]:
    return {
        "kind": kind,
        "action_type": f"{name}Action",
        "observation_type": f"{name}Observation",
    }


def _failure(code: str) -> dict[str, Any]:
    kind = next((kind for kind, codes in FAILURES.items() if code in codes), "unknown")
    retried = kind in RETRIED
    action = "retry" if retried else "settings" if kind in SETTLED else "none"
    return {"kind": kind, "retryable": retried, "user_action": action}
