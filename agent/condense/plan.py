"""What a condenser forgets of a view, or that it cannot."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agent.condense.masks import prompted, sight_of
from agent.condense.wants import wants_condensing
from agent.cuts import Shown
from agent.spec import (
    AmortizedCondenser,
    CondenserSpec,
    NoCondenser,
    PipelineCondenser,
    SummaryCondenser,
)
from agent.view import View
from events.condensation import CondensationSummaryEvent

Asked: TypeAlias = Literal["size", "overflow", "user"]
Rolling: TypeAlias = AmortizedCondenser | SummaryCondenser
Sizes: TypeAlias = Mapping[str, int]
"""Tokens, about, of each event of a view by its id."""

SUMMARY_ROOM = 1000
"""Tokens that a summary may take: a single event that takes fewer is not worth one."""


@dataclass(frozen=True)
class Plan:
    """Forget the events of the view from `start` up to `end`, in the way of `condenser`."""

    start: int
    end: int
    condenser: Rolling


def plan_of(
    view: View, condenser: CondenserSpec, sizes: Sizes, asked: Asked = "size", tries: int = 0
) -> Plan | None:
    """What to forget; none: nothing that helps, or nothing that may go.

    `size` is met where the view has outgrown a limit of the condenser's, and left alone where too
    little can go. `overflow` and `user` are met in any case: by a half of the view, or where that
    does not do (also at the second overflow in a row, `tries` counts them) by all of it behind the
    system prompt. A plan always leaves fewer events, or fewer tokens.
    """
    if asked == "size":
        wanted = (_by_size(view, one, sizes) for one in _rolling(condenser))
        return next((plan for plan in wanted if plan is not None), None)
    if isinstance(condenser, NoCondenser):
        return None
    shown = len(sight_of(view, condenser).events)
    by = next((one for one in _rolling(condenser) if isinstance(one, SummaryCondenser)), None)
    if by is None:
        amortized = next(iter(_rolling(condenser)), AmortizedCondenser())
        return _half(view, amortized, shown, sizes)
    return (_half(view, by, shown, sizes) if tries < 2 else None) or _reset(view, by, sizes)


def rest_of(view: View, plan: Plan, behind: int) -> Plan | None:
    """What is left of a plan once its first part is condensed: the summary and what follows it.

    `behind` is how many events there are behind the plan. None: nothing, or nothing that may go.
    """
    end = len(view.events) - behind
    if going(view, plan.start, end) < 2 or end not in view.cuts.places:
        return None
    return Plan(plan.start, end, plan.condenser)


def going(view: View, start: int, end: int) -> int:
    """How many events go: all but the system prompt that is in force."""
    return sum(event is not view.prompt for event in view.events[start:end])


def _rolling(condenser: CondenserSpec) -> tuple[Rolling, ...]:
    """Those that forget for good."""
    match condenser:
        case AmortizedCondenser() | SummaryCondenser():
            return (condenser,)
        case PipelineCondenser(condensers=several):
            return tuple(rolling for one in several for rolling in _rolling(one))
        case _:
            return ()


def _by_size(view: View, condenser: Rolling, sizes: Sizes) -> Plan | None:
    if not wants_condensing(condenser, len(view.events), _tokens(view.events, sizes)):
        return None
    return _from_middle(view, condenser, _kept_by_limits(view, condenser, sizes))


def _half(view: View, condenser: Rolling, shown: int, sizes: Sizes) -> Plan | None:
    """Leave half of what is shown, or as much as the limits allow."""
    kept = _tail(shown, condenser)
    if wants_condensing(condenser, len(view.events), _tokens(view.events, sizes)):
        kept = min(kept, _kept_by_limits(view, condenser, sizes))
    if isinstance(condenser, AmortizedCondenser):  # there is no summary to fall back on
        kept = max(0, kept)
    return _from_middle(view, condenser, kept)


def _tail(size: int, condenser: Rolling) -> int:
    """How many of the newest events stay so that half of `size` is left, with the summary."""
    return size // 2 - condenser.keep_first - isinstance(condenser, SummaryCondenser)


def _kept_by_limits(view: View, condenser: Rolling, sizes: Sizes) -> int:
    """How many of the newest events stay where the limits decide: the stricter one does."""
    kept = [len(view.events)]
    if len(view.events) > condenser.max_size:
        kept.append(_tail(condenser.max_size, condenser))
    if isinstance(condenser, SummaryCondenser) and condenser.max_tokens is not None:
        spare = _tokens(view.events, sizes) - condenser.max_tokens // 2
        kept.append(_behind(view.events[condenser.keep_first :], spare, sizes))
    return min(kept)


def _behind(events: list[Shown], spare: int, sizes: Sizes) -> int:
    """How many events are left once the first of them have made up for `spare` tokens."""
    for at, event in enumerate(events):
        if spare <= 0:
            return len(events) - at
        spare -= sizes[event.id]
    return 0


def _from_middle(view: View, condenser: Rolling, kept: int) -> Plan | None:
    """Forget all but the first and the newest, cut where that is allowed next."""
    cuts, size = view.cuts, len(view.events)
    start = cuts.at_or_after(max(condenser.keep_first, prompted(view.events)))
    end = cuts.at_or_after(size - kept)
    if start is None or end is None or going(view, start, end) < _least(condenser, size):
        return None
    return Plan(start, end, condenser)


def _least(condenser: Rolling, size: int) -> float:
    """How many events must go for fewer to be left: a summary comes in their place."""
    if isinstance(condenser, SummaryCondenser):
        return max(2, size * condenser.minimum_progress)
    return 1


def _reset(view: View, condenser: SummaryCondenser, sizes: Sizes) -> Plan | None:
    """Everything behind the system prompt, where that is worth a summary."""
    start = prompted(view.events)
    rest = [event for event in view.events[start:] if event is not view.prompt]
    if all(isinstance(event, CondensationSummaryEvent) for event in rest):
        return None
    if len(rest) < 2 and _tokens(rest, sizes) <= SUMMARY_ROOM:
        return None
    return Plan(start, len(view.events), condenser)


def _tokens(events: list[Shown], sizes: Sizes) -> int:
    return sum(sizes[event.id] for event in events)
