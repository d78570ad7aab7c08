"""Trajectories of OpenHands before its SDK, as the events that the SDK would have written.

There an event is told by its `action` or its `observation`; since then, by its `kind`.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Json: TypeAlias = Mapping[str, Any]

CALLS: dict[str, tuple[str, tuple[str, ...]]] = {
    "run": ("terminal", ("command", "is_input", "timeout")),
    "edit": (
        "file_editor",
        ("command", "path", "file_text", "old_str", "new_str", "insert_line", "view_range"),
    ),
    "think": ("think", ("thought",)),
    "task_tracking": ("task_tracker", ("command", "task_list")),
}
"""The tool that does what an action did, and the arguments that both know."""

SILENT = (
    "change_agent_state",
    "condensation",
    "condensation_request",
    "loop_recovery",
    "null",
    "pause",
    "recall",
    "resume",
    "system",
)
"""Actions that no model asked for."""


def is_old(event: Json) -> bool:
    return "kind" not in event and ("action" in event or "observation" in event)


def translated(event: Json) -> Json | None:
    """The event as it would be written now; nothing where it stands for nothing that was said."""
    if "observation" in event:
        return _observed(event)
    action = str(event["action"])
    if action == "message":
        return _said(event)
    if event.get("source") != "agent" or action in SILENT:
        return None
    return _asked(event)


def _said(event: Json) -> Json:
    told = object_of(event.get("args"))
    urls = list_of(told.get("image_urls"))
    images = [{"type": "image", "image_urls": urls}] if urls else []
    content = [_text(told.get("content")), *images]
    message = {"kind": "MessageEvent", "source": event.get("source")}
    return {**message, "llm_message": {"content": content}}


def _observed(event: Json) -> Json | None:
    call_id = object_of(event.get("tool_call_metadata")).get("tool_call_id")
    if call_id is None:
        return None
    shown = {"content": [_text(event.get("content"))]}
    return {"kind": "ObservationEvent", "tool_call_id": call_id, "observation": shown}


def _asked(event: Json) -> Json:
    """The call as the model made it, where that was kept, else as it can be told by what ran."""
    metadata = object_of(event.get("tool_call_metadata"))
    response = object_of(metadata.get("model_response"))
    call_id = metadata.get("tool_call_id")
    call, words = _original(response, call_id)
    if call is None:
        name, arguments = _reconstructed(event)
        call = {"id": call_id, "name": name, "arguments": json.dumps(arguments)}
        words = object_of(event.get("args")).get("thought")
    return {
        "kind": "ActionEvent",
        "source": "agent",
        "tool_call": _without_strays(call),
        "thought": [_text(words)],
        "llm_response_id": response.get("id"),
    }


def _original(response: Json, call_id: Any) -> tuple[Json | None, Any]:
    for choice in map(object_of, list_of(response.get("choices"))):
        message = object_of(choice.get("message"))
        for call in map(object_of, list_of(message.get("tool_calls"))):
            if call.get("id") == call_id:
                made = {"id": call_id, **object_of(call.get("function"))}
                return made, message.get("content")
    return None, None


def _reconstructed(event: Json) -> tuple[str, dict[str, Any]]:
    """Name and arguments of a call that does what the action did."""
    given = dict(object_of(event.get("args")))
    action = str(event["action"])
    if action in CALLS:
        name, known = CALLS[action]
        return name, {key: given[key] for key in known if given.get(key) is not None}
    match action:
        case "read":
            return "file_editor", {"command": "view", "path": given.get("path")}
        case "write":
            text = given.get("content")
            return "file_editor", {
                "command": "create",
                "path": given.get("path"),
                "file_text": text,
            }
        case "finish":
            return "finish", {"message": given.get("final_thought") or given.get("thought") or ""}
        case "call_tool_mcp":
            return str(given.get("name")), dict(object_of(given.get("arguments")))
        case _:
            return action, given


def _without_strays(call: Json) -> Json:
    """`finish` was once asked whether the task is done as well."""
    if call.get("name") != "finish":
        return call
    try:
        message = object_of(json.loads(str(call.get("arguments")))).get("message", "")
    except ValueError:
        return call
    return {**call, "arguments": json.dumps({"message": message})}


def object_of(value: Any) -> Json:
    """The value, or an empty object in place of anything else: nobody vouches for a recording."""
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _text(text: Any) -> Json:
    return {"type": "text", "text": text if isinstance(text, str) else ""}
