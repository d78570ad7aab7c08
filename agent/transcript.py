"""The messages a model is shown: a fold of the events, in the OpenAI chat format."""

import json
from collections.abc import Iterable
from typing import Any, TypeAlias

from events.actions import MCPToolAction
from events.content import ImageContent, TextContent, ToolDefinition, text_of
from events.event import AnyEvent
from events.messages import MessageEvent, SystemPromptEvent
from events.tools import ActionEvent, AgentErrorEvent, ObservationEvent, UserRejectObservation

ChatMessage: TypeAlias = dict[str, Any]
Answer: TypeAlias = ObservationEvent | AgentErrorEvent | UserRejectObservation


class Transcript:
    """Grows with the log, so that a step pays for what is new.

    What it shows is always well formed: a call stands with its result or not at all, the results
    in the order of the calls, nothing between them, and no call id twice. So a batch is shown once
    its last result is in, and what was said meanwhile comes after it. An answer without words or
    calls is not shown: some providers refuse to see it again.
    """

    def __init__(self) -> None:
        self.system: ChatMessage | None = None
        self.tools: list[dict[str, Any]] = []
        self._shown: list[ChatMessage] = []
        self._waiting: list[ChatMessage] = []
        self._batch: _Batch | None = None
        self._ids: set[str] = set()

    def extend(self, events: Iterable[AnyEvent]) -> None:
        for event in events:
            self.add(event)

    def add(self, event: AnyEvent) -> None:
        match event:
            case SystemPromptEvent():
                self._prompted(event)
            case MessageEvent():
                self._say(_spoken(event))
            case ActionEvent():
                self._intend(event)
            case ObservationEvent() | AgentErrorEvent() | UserRejectObservation():
                self._answer(event)
            case _:
                pass

    def messages(self) -> list[ChatMessage]:
        """The prompt as it stands; the list is the caller's, the messages are not."""
        return [*([self.system] if self.system else []), *self._shown, *self._waiting]

    def _prompted(self, event: SystemPromptEvent) -> None:
        parts = [event.system_prompt, *([event.dynamic_context] if event.dynamic_context else [])]
        self.system = {"role": "system", "content": text_of(parts)}
        self.tools = [_function(tool) for tool in event.tools]

    def _say(self, message: ChatMessage) -> None:
        if message["role"] == "assistant" and not message["content"]:
            return
        (self._waiting if self._batch else self._shown).append(message)

    def _intend(self, event: ActionEvent) -> None:
        if self._batch is None or self._batch.response_id != event.llm_response_id:
            self._drop_batch()
            self._batch = _Batch(event)
        call_id = event.tool_call_id
        if not call_id or call_id in self._ids:
            call_id = f"call_{event.id.replace('-', '')}"  # OpenAI takes 40 characters at most
        self._ids.add(call_id)
        self._batch.call(event, call_id)

    def _drop_batch(self) -> None:
        """A batch that was never answered whole cannot be shown."""
        self._batch = None
        self._shown += self._waiting
        self._waiting = []

    def _answer(self, event: Answer) -> None:
        if self._batch is None:
            return
        self._batch.answer(event)
        if self._batch.whole:
            self._shown += self._batch.messages()
            self._drop_batch()


class _Batch:
    """The calls of one answer of the model, and the results that are in."""

    def __init__(self, first: ActionEvent) -> None:
        self.response_id = first.llm_response_id
        self.first = first
        self.calls: list[tuple[ActionEvent, str]] = []
        self.results: dict[str, ChatMessage] = {}

    def call(self, event: ActionEvent, call_id: str) -> None:
        self.calls.append((event, call_id))

    def answer(self, event: Answer) -> None:
        """Take a result in; the first one of a call stands."""
        for action, call_id in self.calls:
            if _answers(event, action) and call_id not in self.results:
                self.results[call_id] = _result(event, call_id)
                return

    @property
    def whole(self) -> bool:
        return len(self.results) == len(self.calls)

    def messages(self) -> list[ChatMessage]:
        asked: ChatMessage = {
            "role": "assistant",
            "content": text_of(self.first.thought) or None,
            "tool_calls": [_call(event, call_id) for event, call_id in self.calls],
        }
        if self.first.thinking_blocks:
            asked["thinking_blocks"] = [block.model_dump() for block in self.first.thinking_blocks]
        return [asked, *(self.results[call_id] for _, call_id in self.calls)]


def _answers(event: Answer, action: ActionEvent) -> bool:
    """An error that names no action is that of a call which could not be validated."""
    if event.action_id is not None:
        return event.action_id == action.id
    return action.action is None and event.tool_call_id == action.tool_call_id


def _call(event: ActionEvent, call_id: str) -> dict[str, Any]:
    function = {"name": event.tool_call.name, "arguments": _arguments(event)}
    return {"id": call_id, "type": "function", "function": function}


def _arguments(event: ActionEvent) -> str:
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


def _result(event: Answer, call_id: str) -> ChatMessage:
    match event:
        case ObservationEvent():
            content = _content(event.observation.content)
        case AgentErrorEvent():
            content = event.error
        case UserRejectObservation():
            content = f"The user did not allow this: {event.rejection_reason}"
    return {"role": "tool", "tool_call_id": call_id, "name": event.tool_name, "content": content}


def _spoken(event: MessageEvent) -> ChatMessage:
    said = event.llm_message
    message: ChatMessage = {
        "role": said.role,
        "content": _content((*said.content, *event.extended_content)),
    }
    if said.thinking_blocks:
        message["thinking_blocks"] = [block.model_dump() for block in said.thinking_blocks]
    return message


def _content(parts: Iterable[TextContent | ImageContent]) -> Any:
    """Plain text where there is nothing but text: every provider takes that."""
    parts = tuple(parts)
    if not any(isinstance(part, ImageContent) for part in parts):
        return text_of(parts)
    return [shown for part in parts for shown in _part(part)]


def _part(part: TextContent | ImageContent) -> list[dict[str, Any]]:
    if isinstance(part, TextContent):
        return [{"type": "text", "text": part.text}]
    return [{"type": "image_url", "image_url": {"url": url}} for url in part.image_urls]


def _function(tool: ToolDefinition) -> dict[str, Any]:
    function = tool.model_dump(mode="json", include={"name", "description", "parameters"})
    return {"type": "function", "function": function}
