"""The page about a comparison of batches, each against the first."""

from collections.abc import Iterator, Mapping, Sequence

from perdure.evaluation.comparison import Comparison
from perdure.exports.report.batch_comparison import BatchComparison, Metric, name_of_test, verdict
from perdure.exports.report.formatting import count, interval, p_value, score, shorten
from perdure.exports.report.page import render
from perdure.exports.report.plots import BarChart, bar_chart, mean_bar

MAX_CHANGES = 1000
"""Samples of one comparison that the page shows."""


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
        numbers=_numbers,
        chart=_chart,
        verdict=verdict,
        name_of_test=name_of_test,
    )


def _numbers(comparison: Comparison) -> list[str]:
    return [
        *(count(comparison.pairs), score(comparison.before), score(comparison.after)),
        *(score(comparison.difference, signed=True), score(comparison.standard_error)),
        *(interval(comparison.interval, signed=True), p_value(comparison.p_value)),
    ]


def _chart(title: str, comparisons: Mapping[str, Comparison]) -> BarChart | None:
    bars = [
        mean_bar(name, found.difference or 0.0, found.standard_error, found.pairs, signed=True)
        for name, found in comparisons.items()
        if found.pairs
    ]
    return bar_chart(title, "difference", bars)
