"""Other spellings of an event's fields, rewritten as the classes here have them.

They are those of the OpenHands SDK in its versions, and of tools whose classes are not known here.
What is not recognised stays as it is.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError

from perdure.events.actions import Action
from perdure.events.base import TIMESTAMP_FORMAT
from perdure.events.custom import AnyAction, AnyObservation
from perdure.events.observations import Observation

Fields: TypeAlias = dict[str, Any]

STORAGE_FIELDS = ("seq", "origin", "usage", "files")
"""Fields that stand beside an event's own in a log, and in an export of it."""

_ACTIONS: TypeAdapter[Any] = TypeAdapter(AnyAction)
_OBSERVATIONS: TypeAdapter[Any] = TypeAdapter(AnyObservation)
_OWN_KINDS = {
    member.model_fields["kind"].default
    for union in (Action, Observation)
    for member in get_args(get_args(union)[0])
}


def normalize_fields(fields: Mapping[str, Any]) -> Fields:
    """Return the fields of an event as `parse_event` reads them."""
    known = {name: value for name, value in fields.items() if name not in STORAGE_FIELDS}
    if "timestamp" in known:
        known["timestamp"] = normalize_timestamp(known["timestamp"])
    if "activated_microagents" in known:
        skills = known.pop("activated_microagents")
        known.setdefault("activated_skills", skills)
    if isinstance(message := known.get("llm_message"), Mapping):
        known["llm_message"] = _normalize_message(message)
    match known.get("kind"):
        case "ActionEvent":
            return _normalize_action_event(known)
        case "ObservationEvent" if "observation" in known:
            name = str(known.get("tool_name", ""))
            return known | {"observation": _normalize_observation(known["observation"], name)}
        case "AgentErrorEvent" if not isinstance(known.get("classification"), str):
            return known | {"classification": _classify_error(str(known.get("error")))}
        case "ConversationErrorEvent":
            return {name: known[name] for name in known if name != "classification"}
        case "SystemPromptEvent" if isinstance(tools := known.get("tools"), list):
            return known | {"tools": list(map(_normalize_tool, tools))}
        case _:
            return known


def normalize_timestamp(value: Any) -> Any:
    """Return a moment in UTC with microseconds, from a datetime or any ISO 8601 form of one.

    A time without a zone is taken as UTC. What is no time stays as it is.
    """
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value.upper())
        moment = moment.astimezone(UTC) if moment.tzinfo else moment
    except (AttributeError, ValueError, OverflowError):
        return value
    return moment.strftime(TIMESTAMP_FORMAT).rjust(26, "0")


def _normalize_message(message: Mapping[str, Any]) -> Fields:
    changed = dict(message)
    if isinstance(text := changed.get("content"), str):
        changed["content"] = [{"type": "text", "text": text}]
    if isinstance(calls := changed.get("tool_calls"), list):
        changed["tool_calls"] = [_normalize_call(call) for call in calls]
    return changed


def _normalize_call(call: Any) -> Any:
    """Flatten a call `{id, type, function: {name, arguments}}`."""
    match call:
        case {"id": call_id, "function": {"name": name, "arguments": arguments}}:
            text = arguments if isinstance(arguments, str) else _to_json(arguments)
            return {"id": call_id, "name": name, "arguments": text}
        case _:
            return call


def _normalize_action_event(fields: Fields) -> Fields:
    """Rewrite the action and the call; a call that is missing is made of the action."""
    if isinstance(thought := fields.get("thought"), str):
        fields["thought"] = [{"type": "text", "text": thought}] if thought else []
    arguments: Any = {}
    if (action := fields.get("action")) is not None:
        arguments = {key: value for key, value in _dump(action).items() if key != "kind"}
        fields["action"] = _normalize_action(action, arguments)
    call = fields.get("tool_call") or {
        "id": fields.get("tool_call_id"),
        "name": fields.get("tool_name"),
        "arguments": _to_json(arguments),
    }
    return fields | {"tool_call": _normalize_call(call)}


def _normalize_action(action: Any, arguments: Fields) -> Any:
    """Return the action, or the arguments of one whose class is not known as those of a tool."""
    if _is_known(action, _ACTIONS):
        return action
    return {"kind": "MCPToolAction", "data": arguments}


def _normalize_observation(observation: Any, tool_name: str) -> Any:
    """Return the observation, or what one whose class is not known says as a tool's result."""
    if _is_known(observation, _OBSERVATIONS):
        return observation
    fields = _dump(observation)
    fields.pop("kind", None)
    failed = fields.get("is_error") is True or fields.get("success") is False
    match fields.pop("content", None):
        case str(text):
            content: Any = [{"type": "text", "text": text}]
        case list(parts):
            content = parts
        case _:
            content = [{"type": "text", "text": _to_json(fields)}] if fields else []
    return {
        "kind": "MCPToolObservation",
        "tool_name": tool_name,
        "content": content,
        "is_error": failed,
    }


def _is_known(value: Any, adapter: TypeAdapter[Any]) -> bool:
    """Tell whether the value is of a class that is known, if only by its kind."""
    kind = value.get("kind") if isinstance(value, Mapping) else getattr(value, "kind", None)
    if str(kind) in _OWN_KINDS or not isinstance(value, Mapping | BaseModel):
        return True
    try:
        adapter.validate_python(value)
    except ValidationError:
        return False
    return True


def _dump(value: Any) -> Fields:
    match value:
        case BaseModel():
            return value.model_dump(mode="json", exclude_none=True)
        case Mapping():
            return dict(value)
        case _:
            return {}


def _normalize_tool(tool: Any) -> Any:
    """Flatten a tool of chat completions, of an MCP server, or of a class that is named."""
    match tool:
        case {"function": {"name": name, **function}}:
            schema = function.get("parameters")
        case {"mcp_tool": {"name": name, "inputSchema": schema, **function}}:
            pass
        case {"kind": str(kind), "action_type": str(), **function}:
            # `FileEditorTool` is `file_editor`; its parameters are those of its action.
            name, schema = re.sub(r"(?<!^)(?=[A-Z])", "_", kind.removesuffix("Tool")).lower(), None
        case _:
            return tool
    hints = function.get("annotations")
    return {
        "name": name,
        "description": function.get("description") or "",
        "parameters": schema or {"type": "object", "properties": {}},
        "annotations": hints if isinstance(hints, Mapping) else {},
    }


def _classify_error(error: str) -> str:
    """Classify the error of an agent that does not say its kind, by the SDK's own sentences."""
    if error.startswith("Tool '") and "not found" in error:
        return "unknown_tool"
    return "bad_arguments" if error.startswith("Error validating args") else "tool_raised"


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
