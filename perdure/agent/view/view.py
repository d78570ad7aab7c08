"""The view of a log: the events that a model is shown."""

from collections.abc import Iterable, Sequence
from typing import Self, overload

from perdure.agent.view.atomic_groups import AtomicGroups
from perdure.agent.view.cut_points import CutPoints, ViewEvent, find_cut_points
from perdure.events.condensation import Condensation, CondensationRequest, CondensationSummaryEvent
from perdure.events.custom import CustomEvent
from perdure.events.entry import Entry
from perdure.events.event import AnyEvent
from perdure.events.messages import SystemPromptEvent
from perdure.events.tools import ObservationEvent


class View(Sequence[ViewEvent]):
    """A fold of events; condensed events are gone, with their summary in their place.

    A sequence of its `events`. Total: for any events in any order, these are complete groups (see
    `AtomicGroups`), each event once; `remaining` holds incomplete ones too. `prompt` is the newest
    system prompt, shown or not, and `condensation_requested` says that a request for a condensation
    is unanswered.
    Between two `condensations`, `remaining` only grows.
    """

    def __init__(self) -> None:
        self.groups = AtomicGroups()
        self.prompt: SystemPromptEvent | None = None
        self.condensation_requested = False
        self.condensations = 0
        self.result_names: set[str] = set()
        """The names of the tools that results are of."""
        self._ids: set[str] = set()
        self.remaining: list[ViewEvent] = []
        self._events: list[ViewEvent] | None = None
        self._next = 0

    @classmethod
    def from_events(cls, events: Iterable[AnyEvent]) -> Self:
        """Return the view of the events of a log, which each have an id of their own."""
        view = cls()
        for event in events:
            view.add(event)
        return view

    @overload
    def __getitem__(self, index: int) -> ViewEvent: ...
    @overload
    def __getitem__(self, index: slice) -> list[ViewEvent]: ...
    def __getitem__(self, index: int | slice) -> ViewEvent | list[ViewEvent]:
        return self.events[index]

    def __len__(self) -> int:
        return len(self.events)

    def add_entries(self, entries: Iterable[Entry]) -> None:
        """Add the events of entries; a gap between slots ends the current groups."""
        for entry in entries:
            if entry.seq != self._next:
                self.groups.end_groups()
            self._next = entry.seq + 1
            self.add(entry.event)

    def add(self, event: AnyEvent) -> None:
        if event.id in self._ids:  # a duplicate
            return
        self._ids.add(event.id)
        self._events = None
        self.groups.add(event)
        if isinstance(event, Condensation):
            self._condense(event)
        elif isinstance(event, CondensationRequest):
            self.condensation_requested = True
        elif isinstance(event, CustomEvent) and not event.model_text():
            pass  # it is for people alone
        elif isinstance(event, ViewEvent):
            self.remaining.append(event)
        if isinstance(event, SystemPromptEvent):
            self.prompt = event
        elif isinstance(event, ObservationEvent):
            self.result_names.add(event.tool_name)

    @property
    def events(self) -> list[ViewEvent]:
        """The events that the model is shown, in order; not to be changed."""
        if self._events is None:
            self._events = self.groups.select_whole(self.remaining)
        return self._events

    @property
    def cut_points(self) -> CutPoints:
        return find_cut_points(self.events, self.groups)

    def summary_offset(self, index: int) -> int:
        """Return the offset of a summary that replaces the events from `events[index]` on.

        It differs from `index` behind an incomplete group: offsets count all remaining events.
        """
        first = self.events[index]
        return next(offset for offset, event in enumerate(self.remaining) if event is first)

    def _condense(self, event: Condensation) -> None:
        self.condensation_requested = False
        self.condensations += 1
        forgotten = set(event.forgotten_event_ids)
        self.remaining = [event for event in self.remaining if event.id not in forgotten]
        if event.summary is not None and event.summary_offset is not None:
            self.remaining.insert(max(0, event.summary_offset), make_summary(event))


def make_summary(event: Condensation) -> CondensationSummaryEvent:
    return CondensationSummaryEvent(
        id=f"{event.id}-summary", timestamp=event.timestamp, summary=event.summary or ""
    )
