"""What is left of a log for the model to be shown: a fold of its events."""

from collections.abc import Iterable

from agent.bonds import Bonds
from agent.cuts import Cuts, Shown, cuts_of
from events.condensation import Condensation, CondensationRequest, CondensationSummaryEvent
from events.entry import Entry
from events.event import AnyEvent
from events.messages import SystemPromptEvent


class View:
    """Grows with the log; what a condensation forgot is gone, and its summary in its place.

    Total: whatever the events, in whatever order, `events` are what belongs together whole (see
    `Bonds`), each once. `held` is what nobody forgot, also where it is not whole. `prompt` is the
    newest system prompt, shown or not, and `requested` says whether a condensation was asked for
    that nobody has made yet.
    """

    def __init__(self) -> None:
        self.bonds = Bonds()
        self.prompt: SystemPromptEvent | None = None
        self.requested = False
        self._ids: set[str] = set()
        self.held: list[Shown] = []
        self._events: list[Shown] | None = None
        self._next = 0

    def enter(self, entries: Iterable[Entry]) -> None:
        """Add the events of entries; nothing goes on across slots that were not read."""
        for entry in entries:
            if entry.seq != self._next:
                self.bonds.part()
            self._next = entry.seq + 1
            self.add(entry.event)

    def add(self, event: AnyEvent) -> None:
        if event.id in self._ids:  # the copy of an event says nothing new
            return
        self._ids.add(event.id)
        self._events = None
        self.bonds.add(event)
        if isinstance(event, Condensation):
            self._condense(event)
        elif isinstance(event, CondensationRequest):
            self.requested = True
        elif isinstance(event, Shown):
            self.held.append(event)
        if isinstance(event, SystemPromptEvent):
            self.prompt = event

    @property
    def events(self) -> list[Shown]:
        """What the model is shown, in order. Not to be changed."""
        if self._events is None:
            self._events = self.bonds.whole(self.held)
        return self._events

    @property
    def cuts(self) -> Cuts:
        return cuts_of(self.events, self.bonds)

    def place(self, index: int) -> int:
        """The offset for a summary in place of what is forgotten from `events[index]` on.

        Another one than `index` where something is held back before it, a call without its result
        say: an offset counts what is held.
        """
        first = self.events[index]
        return next(at for at, one in enumerate(self.held) if one is first)

    def _condense(self, event: Condensation) -> None:
        self.requested = False
        forgotten = set(event.forgotten_event_ids)
        self.held = [one for one in self.held if one.id not in forgotten]
        if event.summary is not None and event.summary_offset is not None:
            self.held.insert(max(0, event.summary_offset), summary_of(event))


def summary_of(event: Condensation) -> CondensationSummaryEvent:
    return CondensationSummaryEvent(
        id=f"{event.id}-summary", timestamp=event.timestamp, summary=event.summary or ""
    )


def view_of(events: Iterable[AnyEvent]) -> View:
    view = View()
    for event in events:
        view.add(event)
    return view
