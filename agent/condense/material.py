"""From a plan to the event that makes it so."""

from collections.abc import Iterable, Sequence

from agent.condense.plan import Plan, Sizes
from agent.cuts import Shown
from agent.ranges import Ranges
from agent.view import View, summary_of
from events.condensation import Condensation
from events.entry import Entry
from events.projection import size


class Material:
    """What there is to be condensed: the slots of a log that are still read, and their view.

    `sizes` are estimated tokens.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = tuple(entries)
        self.view = View()
        self.view.enter(self.entries)
        self.sizes: Sizes = dict(map(_sized, self.entries))

    def forgotten(self, plan: Plan) -> list[Shown]:
        """The events that the plan forgets: never the system prompt that is in force.

        Results that nobody will ever be shown go with them, second ones and those of no call; but
        not out of a thinking loop, which must go on missing them.
        """
        held, bonds = self.view.held, self.view.bonds
        planned = {event.id for event in self.view.events[plan.start : plan.end]}
        seen = [event.id in planned for event in held]
        first, last = seen.index(True), len(seen) - seen[::-1].index(True)

        def goes(at: int, event: Shown) -> bool:
            action = bonds.action_of.get(event.id)
            useless = action in planned or (action == "" and first <= at < last)
            loose = useless and event.id not in bonds.loop_of
            return (event.id in planned or loose) and event is not self.view.prompt

        return [event for at, event in enumerate(held) if goes(at, event)]

    def condensation(
        self,
        plan: Plan,
        timestamp: str,
        summary: str | None = None,
        llm_response_id: str | None = None,
    ) -> Condensation:
        """The event that forgets what is planned, and shows `summary` in its place."""
        forgotten = self.forgotten(plan)
        made = Condensation(
            timestamp=timestamp,
            forgotten_event_ids=tuple(event.id for event in forgotten),
            summary=summary,
            summary_offset=None if summary is None else self.view.place(plan.start),
            llm_response_id=llm_response_id,
            forgotten_size=sum(self.sizes[event.id] for event in forgotten),
            summary_size=None if summary is None else summary_size(summary),
        )
        return made.model_copy(update={"forgotten_seqs": _unread(self.entries, made)})


def summary_size(summary: str) -> int:
    """Tokens, roughly."""
    return max(1, len(summary.encode()) // 4)


def _sized(entry: Entry) -> tuple[str, int]:
    """The id of what the entry shows in a view, and its size there."""
    event = entry.event
    if isinstance(event, Condensation):
        return summary_of(event).id, event.summary_size or summary_size(event.summary or "")
    return event.id, size(entry)


def _unread(entries: Sequence[Entry], made: Condensation) -> Ranges | None:
    """The slots that nobody needs to read any more; none where not all the forgotten are in them.

    What is forgotten, and what lies between and beside it that no model is ever shown: so the
    ranges of one condensation join those of the one before. They are true only if a log without
    these slots gives the same view; but an earlier summary that was placed by its offset among
    what is forgotten now would come to stand elsewhere.
    """
    whole = View()
    whole.enter(entries)
    whole.add(made)
    needed = _needed(entries, whole)
    ranges = tuple(_runs(entries, needed, set(made.forgotten_event_ids)))
    part = View()
    part.enter(entry for entry in entries if not _lies_in(entry.seq, ranges))
    part.add(made)
    return ranges if part.held == whole.held and part.events == whole.events else None


def _needed(entries: Sequence[Entry], view: View) -> set[int]:
    """The slots of all that is held, and of what still has to be forgotten by its ids."""
    held = {event.id for event in view.held}

    def needs(entry: Entry) -> bool:
        event = entry.event
        if isinstance(event, Condensation) and event.forgotten_event_ids:
            return not event.forgotten_seqs or _shown_id(entry) in held
        return _shown_id(entry) in held or event is view.prompt

    return {entry.seq for entry in entries if needs(entry)}


def _runs(
    entries: Sequence[Entry], needed: set[int], forgotten: set[str]
) -> Iterable[tuple[int, int]]:
    """The runs of slots with nothing needed in them and something forgotten."""
    run: list[int] = []
    found = False
    for entry in entries:
        if entry.seq in needed:
            if found:
                yield run[0], run[-1]
            run, found = [], False
            continue
        run.append(entry.seq)
        found = found or _shown_id(entry) in forgotten
    if found:
        yield run[0], run[-1]


def _shown_id(entry: Entry) -> str:
    return _sized(entry)[0]


def _lies_in(seq: int, ranges: Ranges) -> bool:
    return any(first <= seq <= last for first, last in ranges)
