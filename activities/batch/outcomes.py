"""Reading the outcome of a conversation, its last text and its statistics from the log."""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from typing import Any

from perdure.agent.loop.state import State
from perdure.evaluation.result import AttemptFailure, AttemptResult, failure_of_code
from perdure.evaluation.score import Outcome
from perdure.events.entry import Entry
from perdure.events.event import agent_text
from perdure.events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from perdure.exports.json_text import compact_json
from perdure.exports.notes import utc_timestamp
from perdure.exports.results import messages
from perdure.storage.log.exporting import read_in_thread
from perdure.storage.log.reader import LogReader

MAX_EVENTS_AT_ONCE = 500
"""Length limit of a log that is read at once."""

MAX_OUTCOME_BYTES = 16 * 1024 * 1024
"""Size limit of the messages of an outcome; the last ones are kept."""

STOPPED_CODE = "stopped"
"""Failure code of a conversation that somebody ended before its agent was done."""


async def read_outcome(log: LogReader, state: State) -> tuple[Outcome, AttemptResult]:
    """Read the outcome of a conversation up to this state, and its result without scores.

    The result is a failure if the outcome cannot be scored. Raises Missing or Damaged for the first
    event that cannot be read, and StoreError.
    """
    reader = _OutcomeReader(first=(await log.lineage())[0].first, end=state.next_seq)
    if state.next_seq <= MAX_EVENTS_AT_ONCE:
        await asyncio.to_thread(reader.take, await log.read(0, state.next_seq))
    else:
        for error in await read_in_thread(log, reader.take, state.next_seq):
            raise error
    if reader.next_seq < state.next_seq:
        await log.get(reader.next_seq)
    outcome = Outcome(
        text=reader.last_text,
        messages=tuple(reader.messages()),
        status=state.status,
        conversation_id=log.conversation_id,
    )
    limit, failure = _classify_end(state)
    return outcome, AttemptResult(
        conversation_id=log.conversation_id,
        status="failed" if failure else "limited" if limit else "scored",
        answer=reader.last_text or None,
        failure=failure,
        limit=limit,
        stuck=state.status == "stuck",
        usage=state.usage,
        seconds=reader.seconds,
        turns=state.response_count,
        tool_calls=reader.calls,
        tool_errors=reader.errors,
    )


def _classify_end(state: State) -> tuple[str | None, AttemptFailure | None]:
    """Return the limit that ended a conversation, or why it cannot be scored."""
    is_answered = state.status == "idle" and state.response_count and not state.turn_open
    if is_answered or state.status in ("finished", "stuck"):
        return None, None
    if state.status == "error":
        code, _, detail = (state.reason or "unknown").partition(": ")
        failure = failure_of_code(code, detail)
        return (code if failure is None else None), failure
    reason = f" ({state.reason})" if state.reason else ""
    detail = f"The conversation was {state.status}{reason} before its agent was done."
    return None, AttemptFailure(kind="infrastructure", code=STOPPED_CODE, detail=detail)


@dataclass
class _OutcomeReader:
    """Statistics of the log up to slot `end`; its own events begin at slot `first`.

    `recent` has the last messages with their sizes, up to MAX_OUTCOME_BYTES.
    """

    first: int
    end: int
    next_seq: int = 0
    last_text: str = ""
    calls: int = 0
    errors: int = 0
    recent: deque[tuple[dict[str, Any], int]] = field(default_factory=deque)
    size: int = 0
    dropped: int = 0
    started_at: str = ""
    ended_at: str = ""

    @property
    def seconds(self) -> float:
        if not self.started_at:
            return 0.0
        took = datetime.fromisoformat(self.ended_at) - datetime.fromisoformat(self.started_at)
        return max(0.0, took.total_seconds())

    def messages(self) -> Iterator[dict[str, Any]]:
        """Yield the last messages, after a note if there were others."""
        if self.dropped:
            limit = f"all have over {MAX_OUTCOME_BYTES} B."
            note = f"({self.dropped} messages before these are left out: {limit})"
            yield {"role": "system", "content": note}
        yield from (message for message, _ in self.recent)

    def take(self, entries: Iterable[Entry]) -> None:
        own = takewhile(lambda entry: entry.seq < self.end, entries)
        for message in messages(map(self._observe, own)):
            self.recent.append((message, len(compact_json(message))))
            self.size += self.recent[-1][1]
            while self.size > MAX_OUTCOME_BYTES and len(self.recent) > 1:
                self.size -= self.recent.popleft()[1]
                self.dropped += 1

    def _observe(self, entry: Entry) -> Entry:
        event, self.next_seq = entry.event, entry.seq + 1
        self.last_text = agent_text(event) or self.last_text
        self.calls += isinstance(event, ActionEvent)
        is_error = isinstance(event, ObservationEvent) and event.observation.is_error
        self.errors += is_error or isinstance(event, AgentErrorEvent)
        if entry.seq >= self.first and (time := utc_timestamp(event)):
            self.started_at = self.started_at or time
            self.ended_at = time
        return entry
