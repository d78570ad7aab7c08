"""The messages a model is shown: a view in the OpenAI chat format."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from agent.bonds import Answer, Bonds
from agent.calls import arguments_shown
from agent.condense.masks import Sight, sight_of
from agent.cuts import Shown, is_user
from agent.spec import CondenserSpec, NoCondenser
from agent.view import View
from events.condensation import CondensationSummaryEvent
from events.content import ImageContent, TextContent, ToolDefinition, text_of
from events.event import AnyEvent
from events.messages import MessageEvent, RecallEvent, SystemPromptEvent
from events.tools import ActionEvent, AgentErrorEvent, ObservationEvent, UserRejectObservation

ChatMessage: TypeAlias = dict[str, Any]

LONGEST_ID = 40
"""Characters of a call's id that every provider takes."""


class Transcript:
    """Grows with the log, and renders each event once, so that a step pays for what is new.

    What it shows is always well formed, whatever the log holds: a call stands with its result or
    not at all, the results in the order of the calls, nothing between them, and no call id twice.
    So a batch is shown once its last result is in, and what was said meanwhile comes after it. A
    message with nothing in it is not shown: some providers refuse to see it. The newest system
    prompt is in force even where a condensation forgot it.
    """

    def __init__(self, condenser: CondenserSpec | None = None) -> None:
        self.condenser: CondenserSpec = condenser or NoCondenser()
        self.view = View()
        self._rendered: dict[str, Any] = {}

    def add(self, event: AnyEvent) -> None:
        self.view.add(event)

    def extend(self, events: Iterable[AnyEvent]) -> None:
        for event in events:
            self.view.add(event)

    @property
    def tools(self) -> list[dict[str, Any]]:
        prompt = self.view.prompt
        if prompt is None:
            return []
        tools: list[dict[str, Any]] = self._once(
            f"{prompt.id} tools", lambda: [function_of(tool) for tool in prompt.tools]
        )
        return tools

    def messages(self) -> list[ChatMessage]:
        """The prompt as it stands; the list is the caller's, the messages are not."""
        sight = sight_of(self.view, self.condenser)
        batches = _Batches(sight.events, self.view.bonds)
        messages: list[ChatMessage] = []
        if self.view.prompt is not None:
            messages.append(_system(self.view.prompt))
        for event, recalled in _with_recalls(sight.events):
            if isinstance(event, ActionEvent):
                messages += self._batch(batches, event, sight)
            elif (said := self._said(event, recalled)) is not None and said["content"]:
                messages.append(said)
        return messages

    def _said(self, event: Shown, recalled: Sequence[RecallEvent]) -> ChatMessage | None:
        match event:
            case MessageEvent():
                key = f"{event.id} {len(recalled)}"
                said: ChatMessage = self._once(key, lambda: _spoken(event, recalled))
                return said
            case RecallEvent():
                return {"role": "user", "content": event.content}
            case CondensationSummaryEvent():
                return {"role": "user", "content": event.summary}
            case _:
                return None

    def _batch(self, batches: "_Batches", first: ActionEvent, sight: Sight) -> list[ChatMessage]:
        """The message of a batch and those of its results, at the first of its actions."""
        actions = batches.begun_by(first)
        if not actions:
            return []
        named = [(action, batches.fresh_id(action)) for action in actions]
        calls = [
            {"id": call_id, "type": "function", "function": self._function(action)}
            for action, call_id in named
        ]
        results = [
            self._result(batches.results[action.id], call_id, sight) for action, call_id in named
        ]
        return [_asked(first, calls), *results]

    def _function(self, action: ActionEvent) -> Any:
        return self._once(action.id, lambda: _called(action))

    def _result(self, event: Answer, call_id: str, sight: Sight) -> ChatMessage:
        note = sight.notes.get(event.id)
        content = self._once(event.id, lambda: _outcome(event)) if note is None else note
        name = event.tool_name
        return {"role": "tool", "tool_call_id": call_id, "name": name, "content": content}

    def _once(self, key: str, render: Callable[[], Any]) -> Any:
        if key not in self._rendered:
            self._rendered[key] = render()
        return self._rendered[key]


class _Batches:
    """The actions of each answer of the model, their results, and the ids given so far."""

    def __init__(self, events: Sequence[Shown], bonds: Bonds) -> None:
        self.results: dict[str, Answer] = {}
        self._of = bonds.batch_of
        self._actions: dict[int, list[ActionEvent]] = {}
        self._ids: set[str] = set()
        for event in events:
            if isinstance(event, ActionEvent):
                self._actions.setdefault(self._of[event.id], []).append(event)
            elif isinstance(event, Answer):
                self.results[bonds.action_of[event.id]] = event

    def begun_by(self, action: ActionEvent) -> list[ActionEvent]:
        """All actions of the batch; none where another one began it."""
        actions = self._actions[self._of[action.id]]
        return actions if actions[0] is action else []

    def fresh_id(self, action: ActionEvent) -> str:
        """The call's own id, or one made for it where that is none or was there before."""
        given = action.tool_call_id
        if not given or given in self._ids:
            given = f"call_{action.id.replace('-', '')}"[:LONGEST_ID]
        self._ids.add(given)
        return given


def _with_recalls(events: Sequence[Shown]) -> Iterator[tuple[Shown, list[RecallEvent]]]:
    """Each event; with a user's message comes what it called up, which stands right behind it."""
    at = 0
    while at < len(events):
        event, recalled = events[at], []
        at += 1
        if isinstance(event, MessageEvent) and is_user(event):
            while at < len(events) and isinstance(called := events[at], RecallEvent):
                recalled.append(called)
                at += 1
        yield event, recalled


def _system(event: SystemPromptEvent) -> ChatMessage:
    """What differs between conversations is a part of its own, behind what a cache can keep."""
    parts = [event.system_prompt, *([event.dynamic_context] if event.dynamic_context else [])]
    if len(parts) == 1:
        return {"role": "system", "content": event.system_prompt.text}
    return {"role": "system", "content": [shown for part in parts for shown in _part(part)]}


def _asked(first: ActionEvent, calls: list[dict[str, Any]]) -> ChatMessage:
    words = text_of(first.thought) or None
    asked: ChatMessage = {"role": "assistant", "content": words, "tool_calls": calls}
    return asked | _thinking(first)


def _thinking(event: Any) -> ChatMessage:
    """What the model thought before it spoke; `models` knows which provider wants it back."""
    thought: ChatMessage = {}
    if event.reasoning_content:
        thought["reasoning_content"] = event.reasoning_content
    if event.thinking_blocks:
        thought["thinking_blocks"] = [block.model_dump() for block in event.thinking_blocks]
    return thought


def _called(event: ActionEvent) -> dict[str, Any]:
    return {"name": event.tool_call.name, "arguments": arguments_shown(event)}


def _outcome(event: Answer) -> Any:
    match event:
        case ObservationEvent():
            return _content(event.observation.content)
        case AgentErrorEvent():
            return event.error
        case UserRejectObservation():
            return f"The user did not allow this: {event.rejection_reason}"


def _spoken(event: MessageEvent, recalled: Sequence[RecallEvent]) -> ChatMessage:
    said = event.llm_message
    called_up = (TextContent(text=one.content) for one in recalled if one.content)
    content = _content((*said.content, *event.extended_content, *called_up))
    if is_user(event):
        return {"role": "user", "content": content}
    return {"role": "assistant", "content": content} | _thinking(said)


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


def function_of(tool: ToolDefinition) -> dict[str, Any]:
    """The tool as chat completions take it."""
    function = tool.model_dump(mode="json", include={"name", "description", "parameters"})
    return {"type": "function", "function": function}
