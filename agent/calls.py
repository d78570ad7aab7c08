"""The arguments of a tool call as a prompt shows them."""

import json

from events.actions import MCPToolAction
from events.tools import ActionEvent


def arguments_shown(event: ActionEvent) -> str:
    """The arguments as the model wrote them, or where no provider takes those back as understood.

    Some refuse a prompt with anything but an object of plain JSON in it.
    """
    if _readable(event.tool_call.arguments):
        return event.tool_call.arguments
    match event.action:
        case None:
            return "{}"
        case MCPToolAction(data=data):
            return json.dumps(data)
        case action:
            return action.model_dump_json(exclude_defaults=True)


def _readable(arguments: str) -> bool:
    try:
        decoded = json.loads(arguments, parse_constant=_no_constant)
        json.dumps(decoded, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    return isinstance(decoded, dict)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
