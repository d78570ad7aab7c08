"""The content of spans, which they only have where it is asked for.

Answers and calls are read from the log, whose events are masked; requests are masked here.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from perdure.agent.loop.steps import Task
from perdure.events.content import join_text
from perdure.events.entry import Entry
from perdure.events.messages import MessageEvent
from perdure.events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from perdure.storage.log.reader import LogReader
from perdure.telemetry import names
from perdure.telemetry.record import ModelCall
from perdure.telemetry.spans import Span

Mask = Callable[[str], str]


async def add_content(
    span: Span, entries: Sequence[Entry], task: Task[Any], log: LogReader, mask: Mask
) -> Span:
    """Return the span of a step with what was said, asked and answered, as JSON."""
    content: dict[str, str] = {}
    if span.call is not None:
        content[names.INPUT_MESSAGES] = mask(json.dumps(_input_messages(span.call)))
    if span.entry is None:
        return replace(span, attributes={**span.attributes, **content})
    event = span.entry.event
    if isinstance(event, ObservationEvent | AgentErrorEvent):
        action = (await log.get(task.step.action_seq)).event
        if isinstance(action, ActionEvent):
            content[names.TOOL_ARGUMENTS] = action.tool_call.arguments
        content[names.TOOL_RESULT] = _result_text(event)
    elif (response := getattr(event, "llm_response_id", None)) is not None:
        content[names.OUTPUT_MESSAGES] = json.dumps(_output_messages(entries, response))
    return replace(span, attributes={**span.attributes, **content})


def _result_text(event: ObservationEvent | AgentErrorEvent) -> str:
    if isinstance(event, AgentErrorEvent):
        return event.error
    return join_text(event.observation.content)


def _output_messages(entries: Sequence[Entry], response: str) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for event in (entry.event for entry in entries):
        if getattr(event, "llm_response_id", None) != response:
            continue
        if isinstance(event, MessageEvent):
            parts.append(_text_part(join_text(event.llm_message.content)))
        elif isinstance(event, ActionEvent):
            parts += [_text_part(part.text) for part in event.thought]
            call = event.tool_call
            parts.append(_call_part(event.tool_call_id, event.tool_name, call.arguments))
    return [{"role": "assistant", "parts": parts}]


def _input_messages(call: ModelCall) -> list[dict[str, Any]]:
    return [
        {"role": message.get("role", "user"), "parts": list(_parts_of(message))}
        for message in call.request.messages
    ]


def _parts_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Translate a message of the chat-completions format; an image is only named."""
    content = message.get("content") or ""
    texts = [content] if isinstance(content, str) else [it.get("text", "[image]") for it in content]
    if message.get("role") == "tool":
        answer = "\n".join(texts)
        return [
            {"type": "tool_call_response", "id": message.get("tool_call_id"), "response": answer}
        ]
    calls = message.get("tool_calls") or ()
    call_parts = [
        _call_part(it["id"], it["function"]["name"], it["function"]["arguments"]) for it in calls
    ]
    return [*(_text_part(text) for text in texts if text), *call_parts]


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "content": text}


def _call_part(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}
