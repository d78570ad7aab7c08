"""Turns as messages in the OpenAI chat format, which other formats are made from."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from perdure.events.content import TextContent, ToolDefinition
from perdure.events.messages import MessageEvent, RecallEvent, SystemPromptEvent
from perdure.events.tools import ActionEvent
from perdure.exports.json_text import Json
from perdure.exports.turns import Call, Turn, is_model_input

ChatMessage: TypeAlias = Json


def turn_messages(turn: Turn) -> Iterator[ChatMessage]:
    """Yield the messages of a turn, with all their details; none for what is no message.

    `content` is a list of parts of events. The summary of a condensation is no message: everything
    that it sums up is there.
    """
    content = [part for part in turn.content if not isinstance(part, TextContent) or part.text]
    answer = {"role": "assistant", "content": content, "reasoning": turn.reasoning}
    match turn.event:
        case SystemPromptEvent():
            yield {"role": "system", "content": turn.content}
        case MessageEvent() as event if content and is_model_input(event):
            yield {"role": "user", "content": content}
        case MessageEvent() as event if content:
            yield answer | {"whole": event.sender != "interrupted" and not event.truncated}
        case RecallEvent() as event if event.content:
            yield {"role": "user", "content": [TextContent(text=event.content)]}
        case ActionEvent():
            yield answer | {"whole": True, "tool_calls": [_tool_call(call) for call in turn.calls]}
            for call in turn.calls:
                head = {"role": "tool", "tool_call_id": call.id, "name": call.action.tool_name}
                yield head | {"content": call.result, "call": call}
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


def _tool_call(call: Call) -> Json:
    function = {"name": call.action.tool_call.name, "arguments": call.arguments_text}
    return {"id": call.id, "type": "function", "function": function}


def function_of(tool: ToolDefinition) -> Json:
    """Format the tool for chat completions."""
    function = tool.model_dump(mode="json", include={"name", "description", "parameters"})
    return {"type": "function", "function": function}
