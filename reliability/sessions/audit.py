"""The audit of a round, by the logs of its conversations alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from perdure.agent.loop.evolve import evolve
from perdure.agent.loop.state import State
from perdure.events.control import InterruptEvent
from perdure.events.entry import Entry
from perdure.events.event import UnknownEvent
from perdure.events.projection import summarize


@dataclass(frozen=True)
class WorkSpan:
    """The time in which a conversation was running: moments are UTC, as events have them."""

    begin: str
    end: str | None


def work_spans(entries: Sequence[Entry]) -> list[WorkSpan]:
    """Return when a conversation was running, by the moments of the events that changed it."""
    spans: list[WorkSpan] = []
    state = State()
    for entry in entries:
        assert not isinstance(entry.event, UnknownEvent), "we have written this log"
        before, state = state, evolve(state, summarize(entry))
        if before.at_rest and not state.at_rest:
            spans.append(WorkSpan(entry.event.timestamp, None))
        elif not before.at_rest and state.at_rest:
            spans[-1] = WorkSpan(spans[-1].begin, entry.event.timestamp)
    return spans


def most_at_once(spans: Sequence[WorkSpan]) -> int:
    """Return the most that were running at one moment; one that ends then does not count."""
    changes = [(span.begin, 1) for span in spans]
    changes += [(span.end, -1) for span in spans if span.end is not None]
    return max(accumulate(change for _, change in sorted(changes)), default=0)


def count_suspensions(entries: Sequence[Entry]) -> int:
    """Return how often a conversation was suspended."""
    events = (entry.event for entry in entries)
    return sum(isinstance(event, InterruptEvent) and event.reason is not None for event in events)
