"""A log as what was said and done: each call with its result, in the order of the calls.

The whole conversation as it happened, whatever the agent was shown of it later: nothing that a
condensation forgot is missing. At most what stands behind calls without a result is held.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from events.content import Content, ImageContent, TextContent
from events.entry import Entry
from events.event import AnyEvent, UnknownEvent
from events.messages import MessageEvent, RecallEvent
from events.tools import ActionEvent, AgentErrorEvent, ObservationEvent, UserRejectObservation
from exports.images import named

ANSWERS = (ObservationEvent, AgentErrorEvent, UserRejectObservation)
ANSWER_KINDS = tuple(answer.__name__ for answer in ANSWERS)

NO_RESULT = "(No result of this call is on record.)"
"""Stands for the result of a call that was never answered, or whose answer cannot be read."""

LONGEST_ID = 40
"""Characters of a call's id that every provider takes."""


@dataclass
class Call:
    """A call under an id of its own, and the entry that answers it, where there is one."""

    id: str
    entry: Entry
    action: ActionEvent
    answer: Entry | None = None

    @property
    def result(self) -> tuple[Content, ...]:
        """What the model was told of it."""
        return _told(self.answer.event) if self.answer else (TextContent(text=NO_RESULT),)

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
    """One thing that was said or done, or another event.

    `calls` are those of one answer of the model. What a user's message called up is `recalled`.
    """

    entry: Entry
    calls: tuple[Call, ...] = ()
    recalled: tuple[RecallEvent, ...] = ()

    @property
    def event(self) -> AnyEvent:
        return self.entry.event


def turns(entries: Iterable[Entry]) -> Iterator[Turn]:
    """The turns of a log; an answer to no call, or a second one, is a turn of its own.

    What was said before the last result of a batch comes behind it. A batch that lacks results is
    over once the model answers again.
    """
    ids: set[str] = set()
    batch: _Batch | None = None
    for group in _groups(entries):
        if batch and _is_answered(group[0].event):
            yield from batch.turns()
            batch = None
        if isinstance(group[0].event, ActionEvent):
            batch = _Batch([_call(entry, ids) for entry in group])
        elif batch is None:
            yield _turn(group)
        elif not batch.take(group[0]):
            batch.behind.append(_turn(group))
        elif batch.is_whole:
            yield from batch.turns()
            batch = None
    if batch:
        yield from batch.turns()


@dataclass
class _Batch:
    calls: list[Call]
    behind: list[Turn] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        return all(call.answer for call in self.calls)

    def take(self, entry: Entry) -> bool:
        """Whether this answers one of the calls."""
        for call in self.calls:
            if call.answer is None and _answers(entry.event, call.action):
                call.answer = entry
                return True
        return False

    def turns(self) -> Iterator[Turn]:
        yield Turn(self.calls[0].entry, tuple(self.calls))
        yield from self.behind


def _groups(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Together: the calls of one answer side by side, and a message with what it called up."""
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
            return is_heard(first)
        case _:
            return False


def _turn(group: list[Entry]) -> Turn:
    recalled = (entry.event for entry in group[1:])
    return Turn(group[0], recalled=tuple(one for one in recalled if isinstance(one, RecallEvent)))


def _call(entry: Entry, ids: set[str]) -> Call:
    """Under its own id, or one made for it where that is none or was there before."""
    assert isinstance(entry.event, ActionEvent), "only calls stand beside calls"
    given = entry.event.tool_call_id
    if not given or given in ids:
        given = f"call_{entry.event.id.replace('-', '')}"[:LONGEST_ID]
    ids.add(given)
    return Call(given, entry, entry.event)


def is_heard(event: MessageEvent) -> bool:
    """Whether the model hears this from a user; all but its own words it does."""
    return event.llm_message.role != "assistant"


def _is_answered(event: AnyEvent) -> bool:
    """Whether the model has spoken again."""
    if isinstance(event, MessageEvent):
        return event.llm_response_id is not None
    return isinstance(event, ActionEvent)


def _answers(event: AnyEvent, action: ActionEvent) -> bool:
    """An error that names no action is that of a call which could not be read."""
    match event:
        case AgentErrorEvent(action_id=None):
            return action.action is None and event.tool_call_id == action.tool_call_id
        case ObservationEvent() | AgentErrorEvent() | UserRejectObservation():
            return event.action_id == action.id
        case UnknownEvent():
            return event.kind in ANSWER_KINDS and event.raw.get("action_id") == action.id
        case _:
            return False


def _told(answer: AnyEvent) -> tuple[Content, ...]:
    match answer:
        case ObservationEvent():
            return answer.observation.content
        case AgentErrorEvent():
            return (TextContent(text=answer.error),)
        case UserRejectObservation():
            words = f"The user did not allow this: {answer.rejection_reason}"
            return (TextContent(text=words),)
        case _:
            return (TextContent(text=_legible(getattr(answer, "raw", {}))),)


def _legible(raw: Any) -> str:
    """The texts of a newer writer's answer."""
    match raw:
        case {"text": str(text)}:
            return text
        case {"observation": {"content": list(parts)}}:
            return "\n".join(filter(None, map(_legible, parts)))
        case {"error": str(text)} | {"rejection_reason": str(text)}:
            return text
        case _:
            return ""


def said_in(turn: Turn) -> tuple[Content, ...]:
    """All of a message: its own content, what was added to it, and what it called up."""
    event = turn.event
    assert isinstance(event, MessageEvent), "only a message says something"
    called_up = (TextContent(text=one.content) for one in turn.recalled if one.content)
    return (*event.llm_message.content, *event.extended_content, *called_up)


def text_in(parts: Iterable[Content]) -> str:
    """The parts as nothing but text: images are named where they stood."""
    return "\n".join(line for part in parts for line in _lines(part))


def _lines(part: Content) -> Iterable[str]:
    return map(named, part.image_urls) if isinstance(part, ImageContent) else [part.text]


def reasoning_of(event: Any) -> str | None:
    """What the model thought before it spoke, wherever its provider puts that."""
    message = event.llm_message if isinstance(event, MessageEvent) else event
    thought = (getattr(block, "thinking", "") for block in message.thinking_blocks)
    return message.reasoning_content or "\n".join(filter(None, thought)) or None
