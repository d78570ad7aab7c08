"""Messages as an Inspect log has them."""

from typing import Any

from events.content import Content, ImageContent
from events.entry import Entry
from events.tools import AgentErrorEvent, UserRejectObservation
from exports.arguments import arguments_of
from exports.chat import ChatMessage
from exports.turns import Call, Turn, text_in

ERRORS = {
    "unknown_tool": "parsing",
    "bad_arguments": "parsing",
    "interrupted": "cancelled",
}
"""Our errors of calls in their terms; all others are unknown."""


def formed(message: ChatMessage, turn: Turn) -> dict[str, Any]:
    content = [one for part in message["content"] for one in _part(part)]
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
    formed = {"id": turn.event.id, "role": "assistant", "content": content, "source": "generate"}
    if turn.entry.usage and turn.entry.usage.model:
        formed["model"] = turn.entry.usage.model
    if turn.calls:
        formed["tool_calls"] = [_call(call) for call in turn.calls]
    return formed


def _call(call: Call) -> dict[str, Any]:
    action = call.action
    told = {"id": call.id, "function": action.tool_call.name, "arguments": arguments_of(action)}
    error = {} if action.action else {"parse_error": text_in(call.result)}
    return told | {"type": "function", **error}


def _result(call: Call, content: list[dict[str, Any]]) -> dict[str, Any]:
    told = {"role": "tool", "tool_call_id": call.id, "function": call.action.tool_name}
    named = {"id": call.answer.event.id} if call.answer else {}
    failed = {"error": {"type": _failure(call), "message": text_in(call.result)}}
    return {**named, **told, "content": content, **(failed if call.failed else {})}


def _failure(call: Call) -> str:
    match call.answer:
        case Entry(event=AgentErrorEvent(classification=classification)):
            return ERRORS.get(classification, "unknown")
        case Entry(event=UserRejectObservation()):
            return "approval"
        case _:
            return "unknown"


def _part(part: Content) -> list[dict[str, Any]]:
    if isinstance(part, ImageContent):
        return [{"type": "image", "image": url} for url in part.image_urls]
    return [{"type": "text", "text": part.text}]
