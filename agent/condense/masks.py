"""What of a view a prompt leaves out, though nothing is forgotten."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from agent.cuts import Shown, cuts_of
from agent.spec import (
    BrowserMaskingCondenser,
    CondenserSpec,
    MaskingCondenser,
    PipelineCondenser,
    RecentCondenser,
)
from agent.view import View
from events.content import text_of
from events.messages import SystemPromptEvent
from events.tools import ObservationEvent

OLD = "[This result was left out because it is old. Call the tool again if you need it.]"


@dataclass(frozen=True)
class Sight:
    """The events that a prompt is made of; `notes` stand in place of some results, by their id."""

    events: Sequence[Shown]
    notes: Mapping[str, str] = field(default_factory=dict)


def sight_of(view: View, condenser: CondenserSpec) -> Sight:
    """What the condenser lets a prompt show of the view."""
    return _seen(Sight(view.events), condenser, view)


def _seen(sight: Sight, condenser: CondenserSpec, view: View) -> Sight:
    match condenser:
        case RecentCondenser():
            return Sight(_recent(sight.events, condenser, view), sight.notes)
        case MaskingCondenser():
            return Sight(sight.events, {**sight.notes, **dict(_masked(sight.events, condenser))})
        case BrowserMaskingCondenser():
            return Sight(sight.events, {**sight.notes, **dict(_unseen(sight.events, condenser))})
        case PipelineCondenser():
            for one in condenser.condensers:
                sight = _seen(sight, one, view)
            return sight
        case _:
            return sight


def _recent(events: Sequence[Shown], condenser: RecentCondenser, view: View) -> Sequence[Shown]:
    """The newest events, never none of them: a thinking loop that is longer is shown whole."""
    cuts = cuts_of(events, view.bonds)
    first = cuts.at_or_after(max(condenser.keep_first, prompted(events)))
    if first is None:
        return events
    last = min(len(events), len(events) - condenser.max_events + first)
    at = cuts.at_or_after(last)
    if at is None or at == len(events):
        at = cuts.at_or_before(len(events) - 1)
    return events if at <= first else [*events[:first], *events[at:]]


def prompted(events: Sequence[Shown]) -> int:
    """How many events at the beginning stay in any case: the system prompt."""
    return int(bool(events) and isinstance(events[0], SystemPromptEvent))


def _masked(events: Sequence[Shown], condenser: MaskingCondenser) -> Iterator[tuple[str, str]]:
    old = len(events) - condenser.attention_window
    for at, event in enumerate(events):
        if not isinstance(event, ObservationEvent):
            continue
        size = len(text_of(event.observation.content))
        if at < old:
            yield event.id, OLD
        elif condenser.max_chars is not None and size > condenser.max_chars:
            yield event.id, _long(size, condenser.max_chars)


def _long(size: int, most: int) -> str:
    return (
        f"[This result was left out: it has {size:,} characters, and {most:,} are shown at most. "
        "Ask for a smaller part of it.]"
    )


def _unseen(
    events: Sequence[Shown], condenser: BrowserMaskingCondenser
) -> Iterator[tuple[str, str]]:
    seen = [
        event
        for event in events
        if isinstance(event, ObservationEvent)
        and any(fnmatchcase(event.tool_name, pattern) for pattern in condenser.tools)
    ]
    for event in seen[: max(0, len(seen) - condenser.attention_window)]:
        yield event.id, OLD
