"""What a conversation came to: its last words, and all that a scorer may want to know of it."""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from typing import Any

from agent.state import State
from evaluation.result import Failure, ended_by
from evaluation.score import Outcome
from events.content import text_of
from events.entry import Entry
from events.event import AnyEvent
from events.messages import MessageEvent
from events.observations import FinishObservation
from events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from exports.format import About, Format, Part
from exports.json_text import compact
from exports.notes import moment
from exports.results import messages
from storage.exporting import export
from storage.reader import LogReader

PAGE = 50
"""Events of a conversation that are read at a time, from its end, to find its last words."""

FEW = 500
"""Events that are held all at once."""

MOST = 16 * 1024 * 1024
"""Bytes of messages that are kept; of more, the last."""

STOPPED = "stopped"
"""The code of a failure: somebody ended the conversation before its agent was done."""


@dataclass(frozen=True)
class Left:
    """What an agent left behind.

    `limit` is the code of the limit that ended it, `failure` why it cannot be scored. `turns`
    counts the model's answers, `seconds` is from the first event to the last.
    """

    outcome: Outcome
    answer: str | None = None
    turns: int = 0
    tool_calls: int = 0
    tool_errors: int = 0
    seconds: float = 0.0
    stuck: bool = False
    limit: str | None = None
    failure: Failure | None = None


async def outcome_of(log: LogReader, state: State) -> Left:
    """What the conversation came to by this state.

    Raises Missing or Damaged for the first event that cannot be read, and StoreError.
    """
    reading = _Reading(first=(await log.lineage())[0].first, end=state.next_seq)
    if state.next_seq <= FEW:  # nothing is asked for that is not there
        await asyncio.to_thread(reading.take, await log.read(0, state.next_seq))
    else:
        await _read(log, reading)
    if reading.due < state.next_seq:
        await log.at(reading.due)
    limit, failure = _ended(state)
    return Left(
        outcome=Outcome(
            text=reading.words,
            messages=tuple(reading.newest.told()),
            status=state.status,
            conversation_id=log.conversation_id,
        ),
        answer=reading.words or None,
        turns=state.answers,
        tool_calls=reading.calls,
        tool_errors=reading.errors,
        seconds=reading.seconds,
        stuck=state.status == "stuck",
        limit=limit,
        failure=failure,
    )


async def _read(log: LogReader, reading: "_Reading") -> None:
    """Page by page. Raises as `outcome_of` does."""
    read_by = Format("outcome", "", "what a scorer is told", reading.parts)
    lost = await export(log, read_by, About(log.conversation_id), lambda _: None)
    for one in lost:
        if one.seq < reading.end:
            raise one


async def last_words(log: LogReader, end: int) -> str:
    """What the agent said last before slot `end`, in words or by `finish`."""
    while end > 0:
        first = max(0, end - PAGE)
        for entry in reversed(await log.read(first, end - first)):
            if said := words(entry.event):
                return said
        end = first
    return ""


def words(event: AnyEvent) -> str:
    """What the agent said by it; not what somebody else says that it has said before."""
    match event:
        case MessageEvent(source="agent", llm_response_id=None, sender=sender):
            return text_of(event.llm_message.content) if sender == "interrupted" else ""
        case MessageEvent(source="agent"):
            return text_of(event.llm_message.content)
        case ObservationEvent(observation=FinishObservation(content=content)):
            return text_of(content)
        case _:
            return ""


def _ended(state: State) -> tuple[str | None, Failure | None]:
    """The limit that ended it, or why it cannot be scored."""
    match state.status:
        case "finished" | "stuck":
            return None, None
        case "idle" if state.answers and not state.owes:
            return None, None
        case "error":
            code, _, detail = (state.reason or "unknown").partition(": ")
            failure = ended_by(code, detail)
            return (code if failure is None else None), failure
        case status:
            why = f" ({state.reason})" if state.reason else ""
            detail = f"The conversation was {status}{why} before its agent was done."
            return None, Failure(kind="infrastructure", code=STOPPED, detail=detail)


@dataclass
class _Newest:
    """The last messages, as many as there is room for."""

    sizes: deque[int] = field(default_factory=deque)
    kept: deque[dict[str, Any]] = field(default_factory=deque)
    size: int = 0
    dropped: int = 0

    def add(self, message: dict[str, Any]) -> None:
        size = len(compact(message))
        self.kept.append(message)
        self.sizes.append(size)
        self.size += size
        while self.size > MOST and len(self.kept) > 1:
            self.kept.popleft()
            self.size -= self.sizes.popleft()
            self.dropped += 1

    def told(self) -> Iterator[dict[str, Any]]:
        if self.dropped:
            note = f"({self.dropped} messages before these are left out: all have over {MOST} B.)"
            yield {"role": "system", "content": note}
        yield from self.kept


@dataclass
class _Reading:
    """What is seen in a log that passes by: up to slot `end`, and its own from slot `first` on."""

    first: int
    end: int
    due: int = 0
    words: str = ""
    calls: int = 0
    errors: int = 0
    newest: _Newest = field(default_factory=_Newest)
    began: str = ""
    ended: str = ""

    @property
    def seconds(self) -> float:
        if not self.began:
            return 0.0
        took = datetime.fromisoformat(self.ended) - datetime.fromisoformat(self.began)
        return max(0.0, took.total_seconds())

    def parts(self, _: About, entries: Iterable[Entry]) -> Iterator[Part]:
        """No part at all: it is looked at, and not written."""
        self.take(takewhile(lambda entry: entry.seq < self.end, entries))
        return iter(())

    def take(self, entries: Iterable[Entry]) -> None:
        for message in messages(map(self._seen, entries)):
            self.newest.add(message)

    def _seen(self, entry: Entry) -> Entry:
        event, self.due = entry.event, entry.seq + 1
        self.words = words(event) or self.words
        self.calls += isinstance(event, ActionEvent)
        self.errors += _is_error(event)
        if entry.seq >= self.first and (at := moment(event)):
            self.began = self.began or at
            self.ended = at
        return entry


def _is_error(event: AnyEvent) -> bool:
    match event:
        case ObservationEvent(observation=observation):
            return observation.is_error
        case _:
            return isinstance(event, AgentErrorEvent)
