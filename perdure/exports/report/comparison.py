"""Comparisons of batches, each against the first: as a page, as lines, and as JSON."""

from collections.abc import Iterator, Mapping, Sequence

from perdure.evaluation.comparison import Change, Comparison
from perdure.exports.json_text import Json
from perdure.exports.report.batch_comparison import NAME_OF_TEST, BatchComparison, Metric, verdict
from perdure.exports.report.formatting import interval, p_value, score, score_with_error, shorten
from perdure.exports.report.page import render
from perdure.exports.report.plots import Bar, interval_bar

MAX_CHANGES = 1000
"""Samples of one comparison that the page shows."""

MAX_LISTED = 20
"""Samples of a list that are printed without `--all`."""


def comparison_page(
    first: str,
    metric: Metric,
    others: Sequence[BatchComparison],
    notes: Sequence[str] = (),
    made: str = "",
) -> Iterator[bytes]:
    """Render the page; `notes` say what else differs between the batches."""
    return render(
        "comparison.html",
        title=shorten(f"{first} and {', '.join(other.name for other in others)}"),
        kicker="Comparison of batches",
        facts=(
            f"Score: {metric.name}",
            f"Each against {first}; samples are paired by their ids.",
            made,
        ),
        first=first,
        others=others,
        notes=notes,
        overall={other.name: other.comparison for other in others},
        max_changes=MAX_CHANGES,
        bars=_bars,
        verdict=verdict,
        name_of_test=NAME_OF_TEST,
    )


def _bars(comparisons: Mapping[str, Comparison]) -> list[Bar]:
    return [
        interval_bar(name, item.difference or 0.0, item.interval, item.pairs)
        for name, item in comparisons.items()
        if item.pairs
    ]


def comparison_lines(
    first: str, metric: Metric, others: Sequence[BatchComparison], list_all: bool
) -> Iterator[str]:
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
    mean = score_with_error(comparison.difference, comparison.standard_error, signed=True)
    yield f"  before           {score(comparison.before)}  ({first})"
    yield f"  after            {score(comparison.after)}  ({other.name})"
    yield f"  difference       {mean} (standard error)"
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


def comparison_json(first: str, metric: Metric, others: Sequence[BatchComparison]) -> Json:
    return {
        "before": first,
        "scorer": metric.scorer,
        "metric": metric.metric,
        "reducer": metric.reducer,
        "comparisons": [
            {
                "after": other.name,
                **_json_fields(other.comparison),
                "groups": {
                    key: {value: _without_lists(group) for value, group in groups.items()}
                    for key, groups in other.groups.items()
                },
            }
            for other in others
        ],
    }


def _json_fields(comparison: Comparison) -> Json:
    # `before` and `after` are names of batches in this document.
    numbers = comparison.model_dump(mode="json", exclude={"before", "after"})
    means = {"mean_before": comparison.before, "mean_after": comparison.after}
    return {**means, **numbers, "significant": comparison.significant}


def _without_lists(comparison: Comparison) -> Json:
    fields = _json_fields(comparison)
    for name in ("only_before", "only_after"):
        del fields[name]
    counts = {name: len(fields.pop(name)) for name in ("better", "worse")}
    return fields | counts
