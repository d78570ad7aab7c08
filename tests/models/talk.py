"""A conversation with a tool, as it is sent to a model."""

from typing import Any

from tests.models.requests import user

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "é"}'}}
TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "You are careful."},
    user("hello \u2028 wörld"),
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "name": "look", "content": "nothing"},
    {"role": "assistant", "content": "Nothing there."},
    user("go on"),
]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look",
            "description": "Look.",
            "parameters": {
                "type": "object",
                "properties": {"at": {"type": "string", "pattern": "^[a-z]+$"}},
                "required": ["at"],
            },
        },
    }
]
