"""Turns as messages in the OpenAI chat format, which other formats are made from."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from perdure.events.content import Content, ImageContent, TextContent, ToolDefinition, join_text
from perdure.events.messages import MessageEvent, RecallEvent, SystemPromptEvent
from perdure.events.tools import ActionEvent
from perdure.exports.arguments import arguments_text
from perdure.exports.turns import Call, Turn, is_model_input, message_content, reasoning_of

ChatMessage: TypeAlias = dict[str, Any]


def turn_messages(turn: Turn) -> Iterator[ChatMessage]:
    """Yield the messages of a turn, with all their details; none for what is no message.

    `content` is a list of parts of events. The summary of a condensation is no message: everything
    that it sums up is there.
    """
    match turn.event:
        case SystemPromptEvent() as event:
            yield {"role": "system", "content": _instructions(event)}
        case MessageEvent() as event:
            if content := [part for part in message_content(turn) if not _is_empty(part)]:
                yield (
                    _user_message(content)
                    if is_model_input(event)
                    else _assistant_message(event, content)
                )
        case RecallEvent() as event if event.content:
            yield _user_message([TextContent(text=event.content)])
        case ActionEvent() as event:
            yield _calls_message(event, turn.calls)
            for call in turn.calls:
                yield _tool_message(call)
        case _:
            return


def dialogue_messages(turns: Iterable[Turn]) -> Iterator[ChatMessage]:
    """Yield the messages of all turns, with the system prompt moved to the front.

    A later prompt stays at its place; one with the same text, for other tools, is left out.
    """
    pending: list[ChatMessage] | None = []
    prompt: ChatMessage | None = None
    for message in (message for turn in turns for message in turn_messages(turn)):
        if message["role"] == "system":
            if message == prompt:
                continue
            prompt = message
        if pending is None:
            yield message
        elif message["role"] == "system":
            pending = [message, *(earlier for earlier in pending if earlier["role"] != "system")]
        elif message["role"] == "user":
            pending.append(message)
        else:
            yield from pending
            pending = None
            yield message
    yield from pending or ()


def _is_empty(part: Content) -> bool:
    return isinstance(part, TextContent) and not part.text


def _instructions(event: SystemPromptEvent) -> list[Content]:
    return [event.system_prompt, *([event.dynamic_context] if event.dynamic_context else [])]


def _user_message(content: list[Content]) -> ChatMessage:
    return {"role": "user", "content": content}


def _assistant_message(event: MessageEvent, content: list[Content]) -> ChatMessage:
    message = {"role": "assistant", "content": content, "reasoning": reasoning_of(event)}
    return message | {"whole": event.sender != "interrupted"}


def _calls_message(event: ActionEvent, calls: Iterable[Call]) -> ChatMessage:
    tool_calls = [
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
    return message | {"whole": True, "tool_calls": tool_calls}


def _tool_message(call: Call) -> ChatMessage:
    head = {"tool_call_id": call.id, "name": call.action.tool_name}
    return {"role": "tool", **head, "content": list(call.result), "call": call}


def chat_content(parts: Iterable[Content]) -> Any:
    """Format content for chat completions: plain text if there is only text."""
    parts = tuple(parts)
    if not any(isinstance(part, ImageContent) for part in parts):
        return join_text(parts)
    return content_items(parts, lambda url: {"type": "image_url", "image_url": {"url": url}})


def content_items(
    parts: Iterable[Content], image: Callable[[str], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Format content as a list of texts and of images, each as `image` formats its URL."""
    items: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, TextContent):
            items.append({"type": "text", "text": part.text})
        else:
            items += map(image, part.image_urls)
    return items


def function_of(tool: ToolDefinition) -> dict[str, Any]:
    """Format the tool for chat completions."""
    function = tool.model_dump(mode="json", include={"name", "description", "parameters"})
    return {"type": "function", "function": function}
