"""The condensation that a plan becomes."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from perdure.agent.view.condense.plan import CondensationPlan, TokensById
from perdure.agent.view.cut_points import ViewEvent
from perdure.agent.view.seq_ranges import SeqRanges
from perdure.agent.view.view import View, make_summary
from perdure.events.condensation import Condensation
from perdure.events.entry import Entry
from perdure.events.projection import estimate_tokens


class CondensationInput:
    """The input of a condensation: the entries of a log that are still read, and their view."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = tuple(entries)
        self.view = View()
        self.view.add_entries(self.entries)
        self.tokens: TokensById = dict(map(_id_and_tokens, self.entries))

    def select_forgotten(self, plan: CondensationPlan) -> list[ViewEvent]:
        """Select the events that the plan forgets: never the system prompt in force.

        Results that the model can never see are forgotten with them, duplicates and those without a
        call; but not those of a thinking loop, which must stay incomplete.
        """
        remaining, groups = self.view.remaining, self.view.groups
        planned = {event.id for event in self.view.events[plan.start : plan.end]}
        is_planned = [event.id in planned for event in remaining]
        first, last = is_planned.index(True), len(is_planned) - is_planned[::-1].index(True)

        def is_forgotten(at: int, event: ViewEvent) -> bool:
            action = groups.action_of.get(event.id)
            useless = action in planned or (action == "" and first <= at < last)
            loose = useless and event.id not in groups.loop_of
            return (event.id in planned or loose) and event is not self.view.prompt

        return [event for at, event in enumerate(remaining) if is_forgotten(at, event)]

    def make_condensation(
        self,
        plan: CondensationPlan,
        timestamp: str,
        summary: str | None = None,
        llm_response_id: str | None = None,
    ) -> Condensation:
        """Make the event that forgets the planned events and shows `summary` in their place."""
        forgotten = self.select_forgotten(plan)
        condensation = Condensation(
            timestamp=timestamp,
            forgotten_event_ids=tuple(event.id for event in forgotten),
            summary=summary,
            summary_offset=None if summary is None else self.view.summary_offset(plan.start),
            llm_response_id=llm_response_id,
            forgotten_size=sum(self.tokens[event.id] for event in forgotten),
            summary_size=None if summary is None else _estimate_tokens(summary),
        )
        return condensation.model_copy(
            update={"forgotten_seqs": _unneeded_seqs(self.entries, condensation)}
        )


def _estimate_tokens(summary: str) -> int:
    return max(1, len(summary.encode()) // 4)


def _id_and_tokens(entry: Entry) -> tuple[str, int]:
    """Return the id that the entry has in a view, and its tokens there."""
    event = entry.event
    if isinstance(event, Condensation):
        return make_summary(event).id, event.summary_size or _estimate_tokens(event.summary or "")
    return event.id, estimate_tokens(entry)


def _unneeded_seqs(entries: Sequence[Entry], condensation: Condensation) -> SeqRanges | None:
    """Return the slots that need not be read any more, or None if they miss a forgotten event.

    They include slots between and beside the forgotten ones that no model is ever shown: so the
    ranges of successive condensations join. They are valid only if a log without these slots gives
    the same view; an earlier summary placed by its offset among the forgotten events would move.
    """
    whole = _condensed_view(entries, condensation)
    needed = _needed_seqs(entries, whole)
    ranges = tuple(_forgotten_runs(entries, needed, set(condensation.forgotten_event_ids)))
    unneeded = {seq for first, last in ranges for seq in range(first, last + 1)}
    others = [entry for entry in entries if entry.seq not in unneeded]
    reduced = _condensed_view(others, condensation)
    same = reduced.remaining == whole.remaining and reduced.events == whole.events
    return ranges if same else None


def _condensed_view(entries: Sequence[Entry], condensation: Condensation) -> View:
    view = View()
    view.add_entries(entries)
    view.add(condensation)
    return view


def _needed_seqs(entries: Sequence[Entry], view: View) -> set[int]:
    """Return the slots of remaining events, and of condensations that still forget by ids."""
    remaining = {event.id for event in view.remaining}

    def is_needed(entry: Entry) -> bool:
        event = entry.event
        if isinstance(event, Condensation) and event.forgotten_event_ids:
            return not event.forgotten_seqs or _view_id(entry) in remaining
        return _view_id(entry) in remaining or event is view.prompt

    return {entry.seq for entry in entries if is_needed(entry)}


def _forgotten_runs(
    entries: Sequence[Entry], needed: set[int], forgotten: set[str]
) -> Iterable[tuple[int, int]]:
    """Yield the runs of slots with no needed and at least one forgotten event."""
    for is_needed, group in groupby(entries, lambda entry: entry.seq in needed):
        run = list(group)
        if not is_needed and any(_view_id(entry) in forgotten for entry in run):
            yield run[0].seq, run[-1].seq


def _view_id(entry: Entry) -> str:
    return _id_and_tokens(entry)[0]
