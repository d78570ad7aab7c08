"""Comparisons of batches as lines for a terminal, and as JSON for programs."""

from collections.abc import Iterator, Sequence
from typing import Any

from perdure.evaluation.comparison import Change, Comparison
from perdure.exports.report.batch_comparison import BatchComparison, Metric, verdict
from perdure.exports.report.formatting import interval, p_value, score

MAX_LISTED = 20
"""Samples of a list that are printed without `--all`."""


def comparison_lines(
    first: str, metric: Metric, others: Sequence[BatchComparison], list_all: bool
) -> Iterator[str]:
    """Yield the lines of a comparison for a terminal."""
    yield f"score: {metric.name}"
    for other in others:
        comparison = other.comparison
        yield ""
        yield f"{other.name} against {first}"
        yield f"  samples in both  {comparison.pairs:,}"
        if comparison.pairs:
            yield from _means(first, other)
        yield f"  {verdict(comparison)}"
        yield from _only(first, comparison.only_before)
        yield from _only(other.name, comparison.only_after)
        yield from _changes("better", comparison.better, list_all)
        yield from _changes("worse", comparison.worse, list_all)


def _means(first: str, other: BatchComparison) -> Iterator[str]:
    comparison = other.comparison
    error = comparison.standard_error
    margin = "" if error is None else f" ± {score(error)}"
    yield f"  before           {score(comparison.before)}  ({first})"
    yield f"  after            {score(comparison.after)}  ({other.name})"
    yield f"  difference       {score(comparison.difference, signed=True)}{margin} (standard error)"
    if comparison.interval is not None:
        yield f"  95 % interval    {interval(comparison.interval, signed=True)}"
    yield f"  p-value          {p_value(comparison.p_value)}"


def _only(name: str, ids: Sequence[str]) -> Iterator[str]:
    if ids:
        more = f" and {len(ids) - MAX_LISTED:,} more" if len(ids) > MAX_LISTED else ""
        yield f"  scored only in {name}: {len(ids):,} ({', '.join(ids[:MAX_LISTED])}{more})"


def _changes(title: str, changes: Sequence[Change], list_all: bool) -> Iterator[str]:
    yield f"  {title}: {len(changes):,}"
    shown = changes if list_all else changes[:MAX_LISTED]
    for change in shown:
        yield f"    {change.id}  {score(change.before)} -> {score(change.after)}"
    if len(shown) < len(changes):
        yield f"    ... and {len(changes) - len(shown):,} more: --all lists them"


def comparison_json(
    first: str, metric: Metric, others: Sequence[BatchComparison]
) -> dict[str, Any]:
    """The comparison as JSON fields."""
    return {
        "before": first,
        "scorer": metric.scorer,
        "metric": metric.metric,
        "reducer": metric.reducer,
        "comparisons": [
            {
                "after": other.name,
                **_numbers(other.comparison),
                "groups": {
                    key: {value: _without_lists(group) for value, group in groups.items()}
                    for key, groups in other.groups.items()
                },
            }
            for other in others
        ],
    }


def _numbers(comparison: Comparison) -> dict[str, Any]:
    # `before` and `after` are names of batches in this document.
    numbers = comparison.model_dump(mode="json", exclude={"before", "after"})
    means = {"mean_before": comparison.before, "mean_after": comparison.after}
    return {**means, **numbers, "significant": comparison.significant}


def _without_lists(comparison: Comparison) -> dict[str, Any]:
    counts = {"better": len(comparison.better), "worse": len(comparison.worse)}
    lists = {"better", "worse", "only_before", "only_after"}
    numbers = _numbers(comparison).items()
    return {name: value for name, value in numbers if name not in lists} | counts
