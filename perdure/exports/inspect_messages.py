"""Messages in the format of an Inspect log."""

from typing import Any

from perdure.events.entry import Entry
from perdure.events.tools import AgentErrorEvent, UserRejectObservation
from perdure.exports.arguments import arguments_of
from perdure.exports.chat import ChatMessage, content_items
from perdure.exports.turns import Call, Turn, plain_text

ERROR_TYPES = {
    "unknown_tool": "parsing",
    "bad_arguments": "parsing",
    "interrupted": "cancelled",
}
"""Inspect's types for our errors of calls; all others are unknown."""


def format_message(message: ChatMessage, turn: Turn) -> dict[str, Any]:
    content = content_items(message["content"], lambda url: {"type": "image", "image": url})
    match message["role"]:
        case "assistant":
            return _assistant(message, turn, content)
        case "tool":
            return _result(message["call"], content)
        case role:
            return {"id": turn.event.id, "role": role, "content": content}


def _assistant(message: ChatMessage, turn: Turn, content: list[dict[str, Any]]) -> dict[str, Any]:
    if message["reasoning"]:
        content = [{"type": "reasoning", "reasoning": message["reasoning"]}, *content]
    fields = {"id": turn.event.id, "role": "assistant", "content": content, "source": "generate"}
    if turn.entry.usage and turn.entry.usage.model:
        fields["model"] = turn.entry.usage.model
    if turn.calls:
        fields["tool_calls"] = [_call(call) for call in turn.calls]
    return fields


def _call(call: Call) -> dict[str, Any]:
    action = call.action
    fields = {"id": call.id, "function": action.tool_call.name, "arguments": arguments_of(action)}
    error = {} if action.action else {"parse_error": plain_text(call.result)}
    return fields | {"type": "function", **error}


def _result(call: Call, content: list[dict[str, Any]]) -> dict[str, Any]:
    fields = {"role": "tool", "tool_call_id": call.id, "function": call.action.tool_name}
    id_field = {"id": call.answer.event.id} if call.answer else {}
    error = {"error": {"type": _failure(call), "message": plain_text(call.result)}}
    return {**id_field, **fields, "content": content, **(error if call.failed else {})}


def _failure(call: Call) -> str:
    match call.answer:
        case Entry(event=AgentErrorEvent(classification=classification)):
            return ERROR_TYPES.get(classification, "unknown")
        case Entry(event=UserRejectObservation()):
            return "approval"
        case _:
            return "unknown"
