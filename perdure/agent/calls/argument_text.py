"""The arguments of a tool call as text for a prompt."""

import json

from perdure.events.actions import MCPToolAction
from perdure.events.tools import ActionEvent


def render_arguments(event: ActionEvent) -> str:
    """Return the arguments as the model wrote them, or the parsed ones if providers reject those.

    Some providers reject a prompt with anything but a plain JSON object.
    """
    if _is_json_object(event.tool_call.arguments):
        return event.tool_call.arguments
    match event.action:
        case None:
            return "{}"
        case MCPToolAction(data=data):
            return json.dumps(data)
        case action:
            return action.model_dump_json(exclude_defaults=True)


def _is_json_object(arguments: str) -> bool:
    try:
        decoded = json.loads(arguments, parse_constant=_reject_constant)
        json.dumps(decoded, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    return isinstance(decoded, dict)


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
