"""Messages of a prompt as values, one event at a time or all that a model is shown."""

from collections.abc import Iterable
from typing import Any

from perdure.agent.view.transcript import ChatMessage, Transcript, render_result
from perdure.events.content import Content, ImageContent, Message, MessageToolCall, TextContent
from perdure.events.event import AnyEvent, UnknownEvent
from perdure.events.messages import MessageEvent, SystemPromptEvent
from perdure.events.tools import (
    ActionEvent,
    AgentErrorEvent,
    ObservationEvent,
    UserRejectObservation,
)


def to_llm_message(event: AnyEvent) -> Message | None:
    """Return the event as a message of a prompt, by itself; None where no model is shown it.

    Several calls of one response are a message each: `events_to_messages` makes one of them.
    """
    match event:
        case SystemPromptEvent(system_prompt=prompt, dynamic_context=context):
            return Message(role="system", content=(prompt, context) if context else (prompt,))
        case MessageEvent(llm_message=message, extended_content=extended):
            return message.model_copy(update={"content": (*message.content, *extended)})
        case ActionEvent():
            return Message(
                role="assistant",
                content=event.thought,
                tool_calls=(event.tool_call,),
                reasoning_content=event.reasoning_content,
                thinking_blocks=event.thinking_blocks,
            )
        case ObservationEvent() | AgentErrorEvent() | UserRejectObservation():
            return _result_message(event)
        case UnknownEvent():
            return None
        case _:
            text = event.model_text()
            return Message(role="user", content=(TextContent(text=text),)) if text else None


def events_to_messages(events: Iterable[AnyEvent]) -> list[Message]:
    """Return the messages that a model is shown of a log, or of the events of a view.

    They are well formed, whatever the events: the calls of one response are one message, each call
    has its result behind it, and calls without a result are left out. A recall is part of the
    message before it. Condensed events are left out, and their summary is a message.
    """
    transcript = Transcript()
    for event in events:
        transcript.view.add(event)
    return [_parse_message(message) for message in transcript.messages()]


def _result_message(
    event: ObservationEvent | AgentErrorEvent | UserRejectObservation,
) -> Message:
    if isinstance(event, ObservationEvent):
        content = event.observation.content
    else:
        content = (TextContent(text=render_result(event)),)
    names = {"name": event.tool_name, "tool_call_id": event.tool_call_id}
    return Message(role="tool", content=content, **names)


def _parse_message(message: ChatMessage) -> Message:
    """Parse a message in the chat format."""
    calls = [{"id": call["id"], **call["function"]} for call in message.get("tool_calls", ())]
    return Message.model_validate(
        message
        | {
            "content": _parse_content(message["content"]),
            "tool_calls": [MessageToolCall(**call) for call in calls] or None,
        }
    )


def _parse_content(content: Any) -> tuple[Content, ...]:
    match content:
        case None:
            return ()
        case str():
            return (TextContent(text=content),) if content else ()
        case parts:
            return tuple(map(_parse_part, parts))


def _parse_part(part: dict[str, Any]) -> Content:
    if part["type"] == "text":
        return TextContent(text=part["text"])
    return ImageContent(image_urls=(part["image_url"]["url"],))
