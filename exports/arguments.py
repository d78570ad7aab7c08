"""The arguments of a call, as plain JSON: as the model wrote them, or else as understood."""

import json
from typing import Any

from events.actions import MCPToolAction
from events.tools import ActionEvent
from exports.json_text import compact


def arguments_of(event: ActionEvent) -> dict[str, Any]:
    """Nothing where they could not be read."""
    written = _object(event.tool_call.arguments)
    if written is not None:
        return written
    match event.action:
        case None:
            return {}
        case MCPToolAction(data=data):
            return data
        case action:
            return action.model_dump(mode="json", exclude_defaults=True)


def arguments_text(event: ActionEvent) -> str:
    """The same as text, to the letter where the model's own can be read."""
    if _object(event.tool_call.arguments) is not None:
        return event.tool_call.arguments
    return compact(arguments_of(event)).decode()


def are_readable(event: ActionEvent) -> bool:
    return _object(event.tool_call.arguments) is not None


def _object(text: str) -> dict[str, Any] | None:
    try:
        decoded = json.loads(text, parse_constant=_no_constant)
        json.dumps(decoded, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return decoded if isinstance(decoded, dict) else None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
