"""Turns as messages in the OpenAI chat format, before any format makes them its own."""

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from events.content import Content, ImageContent, TextContent, ToolDefinition, text_of
from events.messages import MessageEvent, RecallEvent, SystemPromptEvent
from events.tools import ActionEvent
from exports.arguments import arguments_text
from exports.turns import Call, Turn, is_heard, reasoning_of, said_in

ChatMessage: TypeAlias = dict[str, Any]


def chat(turn: Turn) -> Iterator[ChatMessage]:
    """The messages of a turn, with all that is known; none for what is no message.

    `content` is a list of parts of events. The summary of a condensation is none: all that it
    sums up is there.
    """
    match turn.event:
        case SystemPromptEvent() as event:
            yield {"role": "system", "content": _instructions(event)}
        case MessageEvent() as event:
            if said := [part for part in said_in(turn) if not _is_empty(part)]:
                yield _heard(said) if is_heard(event) else _spoken(event, said)
        case RecallEvent() as event if event.content:
            yield _heard([TextContent(text=event.content)])
        case ActionEvent() as event:
            yield _asked(event, turn.calls)
            for call in turn.calls:
                yield _result(call)
        case _:
            return


def dialogue(told: Iterable[Turn]) -> Iterator[ChatMessage]:
    """The messages of all turns, with what the model was told to be in front of them.

    A later prompt stands where it came; one that says the same, for other tools, is left out.
    """
    held: list[ChatMessage] | None = []
    prompt: ChatMessage | None = None
    for message in (message for turn in told for message in chat(turn)):
        if message["role"] == "system":
            if message == prompt:
                continue
            prompt = message
        if held is None:
            yield message
        elif message["role"] == "system":
            held = [message, *(one for one in held if one["role"] != "system")]
        elif message["role"] == "user":
            held.append(message)
        else:
            yield from held
            held = None
            yield message
    yield from held or ()


def _is_empty(part: Content) -> bool:
    return isinstance(part, TextContent) and not part.text


def _instructions(event: SystemPromptEvent) -> list[Content]:
    return [event.system_prompt, *([event.dynamic_context] if event.dynamic_context else [])]


def _heard(content: list[Content]) -> ChatMessage:
    return {"role": "user", "content": content}


def _spoken(event: MessageEvent, content: list[Content]) -> ChatMessage:
    message = {"role": "assistant", "content": content, "reasoning": reasoning_of(event)}
    return message | {"whole": event.sender != "interrupted"}


def _asked(event: ActionEvent, calls: Iterable[Call]) -> ChatMessage:
    asked = [
        {
            "id": call.id,
            "type": "function",
            "function": {
                "name": call.action.tool_call.name,
                "arguments": arguments_text(call.action),
            },
        }
        for call in calls
    ]
    words = [part for part in event.thought if part.text]
    message = {"role": "assistant", "content": words, "reasoning": reasoning_of(event)}
    return message | {"whole": True, "tool_calls": asked}


def _result(call: Call) -> ChatMessage:
    told = {"tool_call_id": call.id, "name": call.action.tool_name}
    return {"role": "tool", **told, "content": list(call.result), "call": call}


def shown(parts: Iterable[Content]) -> Any:
    """Content as chat completions take it: plain text where there is nothing but text."""
    parts = tuple(parts)
    if not any(isinstance(part, ImageContent) for part in parts):
        return text_of(parts)
    return [one for part in parts for one in _part(part)]


def _part(part: Content) -> list[dict[str, Any]]:
    if isinstance(part, TextContent):
        return [{"type": "text", "text": part.text}]
    return [{"type": "image_url", "image_url": {"url": url}} for url in part.image_urls]


def function_of(tool: ToolDefinition) -> dict[str, Any]:
    """The tool as chat completions take it."""
    function = tool.model_dump(mode="json", include={"name", "description", "parameters"})
    return {"type": "function", "function": function}
