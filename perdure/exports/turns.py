"""Turns: a log as messages and calls, each call with its result, in the order of the calls.

They are the whole conversation, whatever the agent's view was later: nothing that a condensation
forgot is missing. Only what follows calls without a result is held in memory.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from perdure.events.actions import MCPToolAction
from perdure.events.content import Content, Message, TextContent
from perdure.events.entry import Entry
from perdure.events.event import AnyEvent, answered_action_id
from perdure.events.messages import MessageEvent, RecallEvent, SystemPromptEvent
from perdure.events.tools import (
    ActionEvent,
    AgentErrorEvent,
    ObservationEvent,
    UserRejectObservation,
)
from perdure.exports.json_text import Json, compact_json

NO_RESULT = "(No result of this call is on record.)"
"""Result of a call that was never answered, or whose answer cannot be read."""

MAX_CALL_ID_CHARS = 40
"""Characters of a call's id that every provider accepts."""


@dataclass
class Call:
    """A call under a unique id, and the entry that answers it, if there is one."""

    id: str
    action: ActionEvent
    answer: Entry | None = None

    @cached_property
    def valid_arguments(self) -> Json | None:
        """The arguments that the model wrote; None if they are no JSON object."""
        text = self.action.tool_call.arguments
        try:
            decoded = json.loads(text, parse_constant=_refuse_constant)
            json.dumps(decoded, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            return None
        return decoded if isinstance(decoded, dict) else None

    @property
    def arguments(self) -> Json:
        """The arguments as the model wrote them, or else as parsed; empty if unreadable."""
        if self.valid_arguments is not None:
            return self.valid_arguments
        match self.action.action:
            case None:
                return {}
            case MCPToolAction(data=data):
                return data
            case action:
                return action.model_dump(mode="json", exclude_defaults=True)

    @property
    def arguments_text(self) -> str:
        """The arguments as JSON: the model's own text, if that can be read."""
        if self.valid_arguments is not None:
            return self.action.tool_call.arguments
        return compact_json(self.arguments).decode()

    @property
    def result(self) -> tuple[Content, ...]:
        """The answer as the model reads it."""
        return _answer_content(self.answer.event) if self.answer else (TextContent(text=NO_RESULT),)

    @property
    def failed(self) -> bool:
        match self.answer:
            case Entry(event=ObservationEvent(observation=observation)):
                return observation.is_error
            case Entry(event=AgentErrorEvent() | UserRejectObservation()) | None:
                return True
            case _:
                return False


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


@dataclass(frozen=True)
class Turn:
    """A message and its `recalls`, the calls of one model response, or any other event."""

    entry: Entry
    calls: tuple[Call, ...] = ()
    recalls: tuple[RecallEvent, ...] = ()

    @property
    def event(self) -> AnyEvent:
        return self.entry.event

    @property
    def content(self) -> tuple[Content, ...]:
        """The prompt, the message with its additions and recalls, or the thought before calls."""
        match self.event:
            case SystemPromptEvent(system_prompt=prompt, dynamic_context=context):
                return (prompt, context) if context else (prompt,)
            case MessageEvent(llm_message=message, extended_content=extended):
                recalled = (event.content for event in self.recalls if event.content)
                return (*message.content, *extended, *(TextContent(text=text) for text in recalled))
            case ActionEvent(thought=thought):
                return thought
            case _:
                return ()

    @property
    def reasoning(self) -> str | None:
        """The model's reasoning, wherever its provider puts it."""
        event = self.event
        message = event.llm_message if isinstance(event, MessageEvent) else event
        if not isinstance(message, Message | ActionEvent):
            return None
        thought = (getattr(block, "thinking", "") for block in message.thinking_blocks)
        return message.reasoning_content or "\n".join(filter(None, thought)) or None


def turns(entries: Iterable[Entry]) -> Iterator[Turn]:
    """Yield the turns of a log; an answer to no call, or a second one, is a turn of its own.

    Messages before the last result of a group of calls come behind it. A group that lacks results
    ends with the model's next response.
    """
    ids: set[str] = set()
    pending: list[Turn] = []
    for group in _group_entries(entries):
        turn = _turn(group, ids)
        if is_model_response(turn.event):
            yield from pending
            pending = []
        if turn.calls:
            pending = [turn]
        elif not pending:
            yield turn
        elif not _take_answer(pending[0].calls, turn.entry):
            pending.append(turn)
        elif all(call.answer for call in pending[0].calls):
            yield from pending
            pending = []
    yield from pending


def _group_entries(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Group the tool calls of one model response, and a message with its recalls."""
    group: list[Entry] = []
    for entry in entries:
        if group and not (entry.seq == group[-1].seq + 1 and _joins(group[0].event, entry.event)):
            yield group
            group = []
        group.append(entry)
    if group:
        yield group


def _joins(first: AnyEvent, event: AnyEvent) -> bool:
    match first, event:
        case ActionEvent(), ActionEvent():
            return first.llm_response_id == event.llm_response_id
        case MessageEvent(), RecallEvent():
            return is_model_input(first)
        case _:
            return False


def _turn(group: list[Entry], ids: set[str]) -> Turn:
    events = [entry.event for entry in group]
    calls = tuple(_call(event, ids) for event in events if isinstance(event, ActionEvent))
    recalls = tuple(event for event in events[1:] if isinstance(event, RecallEvent))
    return Turn(group[0], calls, recalls)


def _call(action: ActionEvent, ids: set[str]) -> Call:
    """Give the call its own id, or a new one if that is empty or not unique."""
    call_id = action.tool_call_id
    if not call_id or call_id in ids:
        call_id = f"call_{action.id.replace('-', '')}"[:MAX_CALL_ID_CHARS]
    ids.add(call_id)
    return Call(call_id, action)


def is_model_input(event: MessageEvent) -> bool:
    """Check whether the model reads this as a user's message, as all but its own."""
    return event.llm_message.role != "assistant"


def is_model_response(event: AnyEvent) -> bool:
    """Check whether the event is, or begins, an answer of the model."""
    if isinstance(event, MessageEvent):
        return event.llm_response_id is not None
    return isinstance(event, ActionEvent)


def _take_answer(calls: Iterable[Call], entry: Entry) -> bool:
    """Accept the entry if it answers one of the calls."""
    for call in calls:
        if call.answer is None and _answers(entry.event, call.action):
            call.answer = entry
            return True
    return False


def _answers(event: AnyEvent, action: ActionEvent) -> bool:
    """Match an answer to its call; an error without an action is that of an unreadable call."""
    if isinstance(event, AgentErrorEvent) and event.action_id is None:
        return action.action is None and event.tool_call_id == action.tool_call_id
    return answered_action_id(event) == action.id


def _answer_content(answer: AnyEvent) -> tuple[Content, ...]:
    match answer:
        case ObservationEvent():
            return answer.observation.content
        case AgentErrorEvent():
            text = answer.error
        case UserRejectObservation():
            text = f"The user did not allow this: {answer.rejection_reason}"
        case _:
            text = _text_of_unknown(getattr(answer, "raw", {}))
    return (TextContent(text=text),)


def _text_of_unknown(raw: Any) -> str:
    """Return the texts of a newer version's answer."""
    match raw:
        case {"text": str(text)}:
            return text
        case {"observation": {"content": list(parts)}}:
            return "\n".join(filter(None, map(_text_of_unknown, parts)))
        case {"error": str(text)} | {"rejection_reason": str(text)}:
            return text
        case _:
            return ""
