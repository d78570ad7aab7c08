"""The plan of a condensation: the events to forget."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from perdure.agent.spec import (
    AmortizedCondenser,
    CondenserSpec,
    CustomCondenser,
    NoCondenser,
    SummaryCondenser,
    WindowCondenser,
)
from perdure.agent.view.condense.masking import count_prompt_events, mask_view
from perdure.agent.view.condense.thresholds import (
    CondenseReason,
    custom_condensers,
    exceeds_threshold,
    flatten_condenser,
)
from perdure.agent.view.cut_points import ViewEvent
from perdure.agent.view.view import View
from perdure.events.condensation import CondensationSummaryEvent

ForgettingCondenser: TypeAlias = AmortizedCondenser | SummaryCondenser
TokensById: TypeAlias = Mapping[str, int]
"""Estimated tokens of the events of a view, by their ids."""

MAX_SUMMARY_TOKENS = 1000
"""Tokens that a summary may take: a single smaller event is not worth summarizing."""


@dataclass(frozen=True)
class CondensationPlan:
    """Forget the events of the view from `start` up to `end`, by the method of `condenser`."""

    start: int
    end: int
    condenser: ForgettingCondenser


Planner: TypeAlias = Callable[[View, TokensById, CondenseReason], CondensationPlan | None]
"""A custom condenser's function, with its options bound."""

NO_PLANNERS: Mapping[str, Planner] = {}


class BadPlan(ValueError):
    """A custom condenser made no plan, or one that would break the view or remove nothing."""


def plan_condensation(
    view: View,
    condenser: CondenserSpec,
    tokens: TokensById,
    reason: CondenseReason = "size",
    overflows: int = 0,
    planners: Mapping[str, Planner] = NO_PLANNERS,
) -> CondensationPlan | None:
    """Plan a condensation, or return None if none helps or none is allowed.

    For `size` a view beyond a threshold of the condenser is condensed, unless too little can go.
    For `overflow` and `user` half of the view goes, or where that is impossible (and from the
    second of `overflows` on) all of it behind the system prompt. A plan always leaves fewer events
    or tokens. Custom condensers plan by their `planners`. Raises BadPlan.
    """
    if reason == "size":
        plans = (_plan_by_size(view, it, tokens, planners) for it in flatten_condenser(condenser))
        return next(filter(None, plans), None)
    if isinstance(condenser, NoCondenser):
        return None
    customs = custom_condensers(condenser)
    plans = (_plan_custom(view, it, tokens, reason, planners) for it in customs)
    if plan := next(filter(None, plans), None):
        return plan
    visible = len(mask_view(view, condenser).events)
    singles = flatten_condenser(condenser)
    if reason == "overflow" and overflows < 2:
        windows = (it for it in singles if isinstance(it, WindowCondenser))
        forgetting = (AmortizedCondenser(keep_first=it.keep_first) for it in windows)
        plans = (_plan_half(view, it, visible, tokens) for it in forgetting)
        if plan := next(filter(None, plans), None):
            return plan
    summarizer = next((it for it in singles if isinstance(it, SummaryCondenser)), None)
    if summarizer is None:
        amortized = (it for it in singles if isinstance(it, AmortizedCondenser))
        return _plan_half(view, next(amortized, AmortizedCondenser()), visible, tokens)
    half = _plan_half(view, summarizer, visible, tokens) if overflows < 2 else None
    return half or _plan_reset(view, summarizer, tokens)


def plan_remainder(
    view: View, plan: CondensationPlan, events_after: int
) -> CondensationPlan | None:
    """Plan what is left after the first part: its summary and the planned events behind it.

    `events_after` counts the events behind the plan.
    """
    end = len(view.events) - events_after
    if count_removed(view, plan.start, end) < 2 or end not in view.cut_points.indices:
        return None
    return CondensationPlan(plan.start, end, plan.condenser)


def count_removed(view: View, start: int, end: int) -> int:
    """Count the removed events: all but the system prompt in force."""
    return sum(event is not view.prompt for event in view.events[start:end])


def _plan_by_size(
    view: View, condenser: CondenserSpec, tokens: TokensById, planners: Mapping[str, Planner]
) -> CondensationPlan | None:
    if not _exceeds(view, condenser, tokens):
        return None
    if isinstance(condenser, CustomCondenser):
        return _plan_custom(view, condenser, tokens, "size", planners)
    assert isinstance(condenser, ForgettingCondenser), "only these have a threshold"
    return _plan_middle(view, condenser, _tail_within_limits(view, condenser, tokens))


def _exceeds(view: View, condenser: CondenserSpec, tokens: TokensById) -> bool:
    return exceeds_threshold(condenser, len(view.events), _sum_tokens(view.events, tokens))


def _plan_custom(
    view: View,
    condenser: CustomCondenser,
    tokens: TokensById,
    reason: CondenseReason,
    planners: Mapping[str, Planner],
) -> CondensationPlan | None:
    plan = planners[condenser.function](view, tokens, reason)
    if plan is None:
        return None
    if not {plan.start, plan.end} <= set(view.cut_points):
        raise BadPlan(f"{plan.start} and {plan.end} are not both cut points of the view")
    if count_removed(view, plan.start, plan.end) < _min_removed(plan.condenser, 0):
        raise BadPlan(f"from {plan.start} to {plan.end} there is too little to forget")
    return plan


def _plan_half(
    view: View, condenser: ForgettingCondenser, visible: int, tokens: TokensById
) -> CondensationPlan | None:
    """Leave half of what is visible, or as much as the thresholds allow."""
    tail = _tail_for_half(visible, condenser)
    if _exceeds(view, condenser, tokens):
        tail = min(tail, _tail_within_limits(view, condenser, tokens))
    if isinstance(condenser, AmortizedCondenser):  # no summary could stand for all events
        tail = max(0, tail)
    return _plan_middle(view, condenser, tail)


def _tail_for_half(size: int, condenser: ForgettingCondenser) -> int:
    """Count the newest events that stay if half of `size` is left, including the summary."""
    return size // 2 - condenser.keep_first - isinstance(condenser, SummaryCondenser)


def _tail_within_limits(view: View, condenser: ForgettingCondenser, tokens: TokensById) -> int:
    """Count the newest events that stay by the strictest threshold."""
    tails = [len(view.events)]
    if len(view.events) > condenser.max_size:
        tails.append(_tail_for_half(condenser.max_size, condenser))
    if isinstance(condenser, SummaryCondenser) and condenser.max_tokens is not None:
        excess = _sum_tokens(view.events, tokens) - condenser.max_tokens // 2
        tails.append(_tail_after_excess(view.events[condenser.keep_first :], excess, tokens))
    return min(tails)


def _tail_after_excess(events: list[ViewEvent], excess: int, tokens: TokensById) -> int:
    """Count the events that are left once the first ones make up for `excess` tokens."""
    for at, event in enumerate(events):
        if excess <= 0:
            return len(events) - at
        excess -= tokens[event.id]
    return 0


def _plan_middle(view: View, condenser: ForgettingCondenser, tail: int) -> CondensationPlan | None:
    """Forget all but the first and the newest events, at the next allowed cut points."""
    cut_points, size = view.cut_points, len(view.events)
    start = cut_points.at_or_after(max(condenser.keep_first, count_prompt_events(view.events)))
    end = cut_points.at_or_after(size - tail)
    if start is None or end is None:
        return None
    enough = count_removed(view, start, end) >= _min_removed(condenser, size)
    return CondensationPlan(start, end, condenser) if enough else None


def _min_removed(condenser: ForgettingCondenser, size: int) -> float:
    """Return how many events must go, so that fewer are left with the summary in their place."""
    if isinstance(condenser, SummaryCondenser):
        return max(2, size * condenser.minimum_progress)
    return 1


def _plan_reset(
    view: View, condenser: SummaryCondenser, tokens: TokensById
) -> CondensationPlan | None:
    """Forget everything behind the system prompt, if that is worth a summary."""
    start = count_prompt_events(view.events)
    rest = [event for event in view.events[start:] if event is not view.prompt]
    if all(isinstance(event, CondensationSummaryEvent) for event in rest):
        return None
    if len(rest) < 2 and _sum_tokens(rest, tokens) <= MAX_SUMMARY_TOKENS:
        return None
    return CondensationPlan(start, len(view.events), condenser)


def _sum_tokens(events: list[ViewEvent], tokens: TokensById) -> int:
    return sum(tokens[event.id] for event in events)
