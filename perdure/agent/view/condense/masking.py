"""The visible part of a view: a prompt leaves out the rest, although it is not forgotten."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from perdure.agent.spec import (
    BrowserMaskingCondenser,
    CondenserSpec,
    MaskingCondenser,
    RecentCondenser,
)
from perdure.agent.view.condense.thresholds import flatten_condenser
from perdure.agent.view.cut_points import ViewEvent, find_cut_points
from perdure.agent.view.view import View
from perdure.events.content import join_text
from perdure.events.messages import SystemPromptEvent
from perdure.events.tools import ObservationEvent

OLD_RESULT_NOTE = (
    "[This result was left out because it is old. Call the tool again if you need it.]"
)
LONG_RESULT_NOTE = (
    "[This result was left out: it has {size:,} characters, and {limit:,} are shown at most. Ask "
    "for a smaller part of it.]"
)


class VisibleView(NamedTuple):
    """The events of a prompt; `notes` replace the content of results, by their ids."""

    events: Sequence[ViewEvent]
    notes: Mapping[str, str]


MASKS = (MaskingCondenser, RecentCondenser)


def may_hide(condenser: CondenserSpec, tool_names: Collection[str]) -> bool:
    """Tell whether a prompt may leave out events, or results of these tools."""
    for it in flatten_condenser(condenser):
        if isinstance(it, BrowserMaskingCondenser):
            if any(_is_browser(it, name) for name in tool_names):
                return True
        elif isinstance(it, MASKS):
            return True
    return False


def mask_view(view: View, condenser: CondenserSpec) -> VisibleView:
    events: Sequence[ViewEvent] = view.events
    notes: dict[str, str] = {}
    for it in flatten_condenser(condenser):
        match it:
            case RecentCondenser():
                events = _select_recent(events, it, view)
            case MaskingCondenser():
                notes |= _mask_results(events, it)
            case BrowserMaskingCondenser():
                notes |= _mask_browser_results(events, it)
    return VisibleView(events, notes)


def _select_recent(
    events: Sequence[ViewEvent], condenser: RecentCondenser, view: View
) -> Sequence[ViewEvent]:
    """Select the first and the newest events, and at least the last group."""
    cut_points = find_cut_points(events, view.groups)
    first = cut_points.at_or_after(max(condenser.keep_first, count_prompt_events(events)))
    if first is None:
        return events
    last = min(len(events), len(events) - condenser.max_events + first)
    at = cut_points.at_or_after(last)
    if at is None or at == len(events):
        at = cut_points.at_or_before(len(events) - 1)
    return events if at <= first else [*events[:first], *events[at:]]


def count_prompt_events(events: Sequence[ViewEvent]) -> int:
    """Count the leading events that always stay: the system prompt."""
    return int(bool(events) and isinstance(events[0], SystemPromptEvent))


def _mask_results(
    events: Sequence[ViewEvent], condenser: MaskingCondenser
) -> Iterator[tuple[str, str]]:
    old = len(events) - condenser.attention_window
    for at, event in enumerate(events):
        if not isinstance(event, ObservationEvent):
            continue
        size = len(join_text(event.observation.content))
        if at < old:
            yield event.id, OLD_RESULT_NOTE
        elif condenser.max_chars is not None and size > condenser.max_chars:
            yield event.id, LONG_RESULT_NOTE.format(size=size, limit=condenser.max_chars)


def _mask_browser_results(
    events: Sequence[ViewEvent], condenser: BrowserMaskingCondenser
) -> Iterator[tuple[str, str]]:
    results = [
        event
        for event in events
        if isinstance(event, ObservationEvent) and _is_browser(condenser, event.tool_name)
    ]
    for event in results[: max(0, len(results) - condenser.attention_window)]:
        yield event.id, OLD_RESULT_NOTE


def _is_browser(condenser: BrowserMaskingCondenser, tool_name: str) -> bool:
    return any(fnmatchcase(tool_name, pattern) for pattern in condenser.tools)
