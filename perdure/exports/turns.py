"""Turns: a log as messages and calls, each call with its result, in the order of the calls.

They are the whole conversation, whatever the agent's view was later: nothing that a condensation
forgot is missing. Only what follows calls without a result is held in memory.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from perdure.events.content import Content, ImageContent, TextContent
from perdure.events.entry import Entry
from perdure.events.event import AnyEvent, answered_action_id
from perdure.events.messages import MessageEvent, RecallEvent
from perdure.events.tools import (
    ActionEvent,
    AgentErrorEvent,
    ObservationEvent,
    UserRejectObservation,
)
from perdure.exports.images import describe_image

NO_RESULT = "(No result of this call is on record.)"
"""Result of a call that was never answered, or whose answer cannot be read."""

MAX_CALL_ID_CHARS = 40
"""Characters of a call's id that every provider accepts."""


@dataclass
class Call:
    """A call under a unique id, and the entry that answers it, if there is one."""

    id: str
    entry: Entry
    action: ActionEvent
    answer: Entry | None = None

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


@dataclass(frozen=True)
class Turn:
    """A message, the calls of one model response, or any other event.

    `recalls` are the events that a user's message triggered.
    """

    entry: Entry
    calls: tuple[Call, ...] = ()
    recalls: tuple[RecallEvent, ...] = ()

    @property
    def event(self) -> AnyEvent:
        return self.entry.event


def turns(entries: Iterable[Entry]) -> Iterator[Turn]:
    """Yield the turns of a log; an answer to no call, or a second one, is a turn of its own.

    Messages before the last result of a group of calls come behind it. A group that lacks results
    ends with the model's next response.
    """
    ids: set[str] = set()
    calls: _CallGroup | None = None
    for group in _group_entries(entries):
        if calls and _is_model_response(group[0].event):
            yield from calls.turns()
            calls = None
        if isinstance(group[0].event, ActionEvent):
            calls = _CallGroup([_call(entry, ids) for entry in group])
        elif calls is None:
            yield _turn(group)
        elif not calls.take(group[0]):
            calls.behind.append(_turn(group))
        elif calls.is_whole:
            yield from calls.turns()
            calls = None
    if calls:
        yield from calls.turns()


@dataclass
class _CallGroup:
    calls: list[Call]
    behind: list[Turn] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        return all(call.answer for call in self.calls)

    def take(self, entry: Entry) -> bool:
        """Accept the entry if it answers one of the calls."""
        for call in self.calls:
            if call.answer is None and _answers(entry.event, call.action):
                call.answer = entry
                return True
        return False

    def turns(self) -> Iterator[Turn]:
        yield Turn(self.calls[0].entry, tuple(self.calls))
        yield from self.behind


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


def _turn(group: list[Entry]) -> Turn:
    followers = (entry.event for entry in group[1:])
    return Turn(
        group[0], recalls=tuple(recall for recall in followers if isinstance(recall, RecallEvent))
    )


def _call(entry: Entry, ids: set[str]) -> Call:
    """Give the call its own id, or a new one if that is empty or not unique."""
    assert isinstance(entry.event, ActionEvent), "only calls stand beside calls"
    call_id = entry.event.tool_call_id
    if not call_id or call_id in ids:
        call_id = f"call_{entry.event.id.replace('-', '')}"[:MAX_CALL_ID_CHARS]
    ids.add(call_id)
    return Call(call_id, entry, entry.event)


def is_model_input(event: MessageEvent) -> bool:
    """Check whether the model reads this as a user's message, as all but its own."""
    return event.llm_message.role != "assistant"


def _is_model_response(event: AnyEvent) -> bool:
    """Check whether the event is the model's next response."""
    if isinstance(event, MessageEvent):
        return event.llm_response_id is not None
    return isinstance(event, ActionEvent)


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
            return (TextContent(text=answer.error),)
        case UserRejectObservation():
            text = f"The user did not allow this: {answer.rejection_reason}"
            return (TextContent(text=text),)
        case _:
            return (TextContent(text=_text_of_unknown(getattr(answer, "raw", {}))),)


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


def message_content(turn: Turn) -> tuple[Content, ...]:
    """Return a message's content, the content added to it, and its recalls."""
    event = turn.event
    assert isinstance(event, MessageEvent), "only a message says something"
    recalled = (TextContent(text=recall.content) for recall in turn.recalls if recall.content)
    return (*event.llm_message.content, *event.extended_content, *recalled)


def plain_text(parts: Iterable[Content]) -> str:
    """Return the parts as text, with images named where they stood."""
    return "\n".join(line for part in parts for line in _lines(part))


def _lines(part: Content) -> Iterable[str]:
    return map(describe_image, part.image_urls) if isinstance(part, ImageContent) else [part.text]


def reasoning_of(event: Any) -> str | None:
    """Return the model's reasoning, wherever its provider puts it."""
    message = event.llm_message if isinstance(event, MessageEvent) else event
    thought = (getattr(block, "thinking", "") for block in message.thinking_blocks)
    return message.reasoning_content or "\n".join(filter(None, thought)) or None
