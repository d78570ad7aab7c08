"""Translation of OpenHands trajectories from before its SDK to the SDK's events.

A legacy event has an `action` or an `observation`; a newer one has a `kind`.
"""

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

Json: TypeAlias = Mapping[str, Any]

TOOLS_BY_ACTION: dict[str, tuple[str, tuple[str, ...]]] = {
    "run": ("terminal", ("command", "is_input", "timeout")),
    "edit": (
        "file_editor",
        ("command", "path", "file_text", "old_str", "new_str", "insert_line", "view_range"),
    ),
    "think": ("think", ("thought",)),
    "task_tracking": ("task_tracker", ("command", "task_list")),
}
"""The tool equivalent to a legacy action, and the arguments that both have."""

IGNORED_ACTIONS = (
    *("change_agent_state", "condensation", "condensation_request", "loop_recovery", "null"),
    *("pause", "recall", "resume", "system"),
)
"""Actions that no model requested."""


def is_legacy(event: Json) -> bool:
    return "kind" not in event and ("action" in event or "observation" in event)


def translate(event: Json) -> Json | None:
    """Translate a legacy event; None if it is no message, tool call or tool result."""
    if "observation" in event:
        return _translate_observation(event)
    action = str(event["action"])
    if action == "message":
        return _translate_message(event)
    if event.get("source") != "agent" or action in IGNORED_ACTIONS:
        return None
    return _translate_action(event)


def _translate_message(event: Json) -> Json:
    urls = find_list(event, "args", "image_urls")
    images = [{"type": "image", "image_urls": urls}] if urls else []
    content = [_text_part(find(event, "args", "content")), *images]
    message = {"kind": "MessageEvent", "source": event.get("source")}
    return {**message, "llm_message": {"content": content}}


def _translate_observation(event: Json) -> Json | None:
    call_id = find(event, "tool_call_metadata", "tool_call_id")
    if call_id is None:
        return None
    observation = {"content": [_text_part(event.get("content"))]}
    return {"kind": "ObservationEvent", "tool_call_id": call_id, "observation": observation}


def _translate_action(event: Json) -> Json:
    """Translate an action to the model's original call, or one reconstructed from the action."""
    call_id = find(event, "tool_call_metadata", "tool_call_id")
    response = find(event, "tool_call_metadata", "model_response")
    call, thought = _find_original_call(response, call_id)
    if call is None:
        name, arguments = _reconstruct_call(event)
        call = {"id": call_id, "name": name, "arguments": json.dumps(arguments)}
        thought = find(event, "args", "thought")
    return {
        "kind": "ActionEvent",
        "source": "agent",
        "tool_call": _without_extra_arguments(call),
        "thought": [_text_part(thought)],
        "llm_response_id": find(response, "id"),
    }


def _find_original_call(response: Any, call_id: Any) -> tuple[Json | None, Any]:
    for choice in find_list(response, "choices"):
        for call in find_list(choice, "message", "tool_calls"):
            if find(call, "id") == call_id:
                function = as_object(find(call, "function"))
                return {"id": call_id, **function}, find(choice, "message", "content")
    return None, None


def _reconstruct_call(event: Json) -> tuple[str, dict[str, Any]]:
    """Reconstruct the name and arguments of a call equivalent to the action."""
    arguments = as_object(event.get("args"))
    action = str(event["action"])
    if action in TOOLS_BY_ACTION:
        name, keys = TOOLS_BY_ACTION[action]
        return name, {key: arguments[key] for key in keys if arguments.get(key) is not None}
    path = {"path": arguments.get("path")}
    match action:
        case "read":
            return "file_editor", {"command": "view", **path}
        case "write":
            text = {"file_text": arguments.get("content")}
            return "file_editor", {"command": "create", **path, **text}
        case "finish":
            message = arguments.get("final_thought") or arguments.get("thought") or ""
            return "finish", {"message": message}
        case "call_tool_mcp":
            return str(arguments.get("name")), as_object(arguments.get("arguments"))
        case _:
            return action, arguments


def _without_extra_arguments(call: Json) -> Json:
    """Drop an argument that only the legacy `finish` tool has: whether the task is done."""
    if call.get("name") != "finish":
        return call
    try:
        arguments = json.loads(str(call.get("arguments")))
    except ValueError:
        return call
    message = as_object(arguments).get("message", "")
    return {**call, "arguments": json.dumps({"message": message})}


def as_object(value: Any) -> dict[str, Any]:
    """Return the value if it is an object, else an empty one: recordings are not validated."""
    return value if isinstance(value, dict) else {}


def find(value: Any, *keys: str) -> Any:
    """Return the value under the first key, then the next; None where there is none."""
    for key in keys:
        value = as_object(value).get(key)
    return value


def find_list(value: Any, *keys: str) -> list[Any]:
    """Return the list under the keys; an empty one where there is none."""
    item = find(value, *keys)
    return item if isinstance(item, list) else []


def _text_part(text: Any) -> Json:
    return {"type": "text", "text": text if isinstance(text, str) else ""}
