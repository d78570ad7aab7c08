"""The arguments of a call as plain JSON: as the model wrote them, or else as parsed."""

import json
from typing import Any

from perdure.events.actions import MCPToolAction
from perdure.events.tools import ActionEvent
from perdure.exports.json_text import compact_json


def arguments_of(event: ActionEvent) -> dict[str, Any]:
    """Return the arguments, or nothing if they could not be read."""
    parsed = _parse_object(event.tool_call.arguments)
    if parsed is not None:
        return parsed
    match event.action:
        case None:
            return {}
        case MCPToolAction(data=data):
            return data
        case action:
            return action.model_dump(mode="json", exclude_defaults=True)


def arguments_text(event: ActionEvent) -> str:
    """Return the arguments as text: the model's own, if that can be read."""
    if _parse_object(event.tool_call.arguments) is not None:
        return event.tool_call.arguments
    return compact_json(arguments_of(event)).decode()


def are_readable(event: ActionEvent) -> bool:
    return _parse_object(event.tool_call.arguments) is not None


def _parse_object(text: str) -> dict[str, Any] | None:
    try:
        decoded = json.loads(text, parse_constant=_refuse_constant)
        json.dumps(decoded, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return decoded if isinstance(decoded, dict) else None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
