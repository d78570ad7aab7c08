"""The scores of a batch, as tables and plots."""

from collections.abc import Iterable, Iterator, Sequence

from evaluation.report import words
from evaluation.report.page import Cell, figures, number, paragraph, section, table
from evaluation.report.page import words as cell
from evaluation.report.plots import Bar, bars
from evaluation.report.rows import LONGEST
from evaluation.score import number as graded
from evaluation.statistics import MOST_RESAMPLED, normal
from evaluation.summary import Estimate, Group, Measure, Summary

MOST_MEASURES = 100
"""Metrics in the table."""

MOST_PLOTS = 40

HEADS = (
    *("Scorer", "Metric", "Reduced by", "#Samples", "#Mean", "#Standard error"),
    *("#95 % interval (bootstrap)", "#95 % interval (Wilson)"),
)


def scores(summary: Summary, reducer: str) -> str:
    measures = summary.measures[:MOST_MEASURES]
    left_out = len(summary.measures) - len(measures)
    numbers = table(HEADS, (row for one in measures for row in _estimates(one)))
    note = (
        "A sample's epochs are reduced to one value, and the mean, its standard error and its "
        f"intervals are over samples. With over {MOST_RESAMPLED:,} samples the first interval is "
        "that of the normal distribution; Wilson's is there where every value is 0 or 1."
    )
    more = f"{left_out:,} more metrics are not shown." if left_out > 0 else ""
    none = paragraph("Nothing has a score yet.") if not numbers else paragraph(note)
    return (
        section("scores", "Scores", numbers, none, paragraph(more))
        + _labels(measures)
        + _groups(summary, measures, reducer)
    )


def _estimates(measure: Measure) -> Iterator[Sequence[Cell]]:
    for name, one in measure.estimates.items():
        yield (
            *(
                cell(_short(measure.scorer)),
                cell(_short(measure.metric) or words.NOTHING),
                cell(name),
            ),
            number(words.count(one.samples)),
            Cell(f"<strong>{words.score(one.mean)}</strong>", "n"),
            number(words.score(one.standard_error)),
            number(words.interval(one.interval)),
            number(words.interval(one.wilson)),
        )


def headline(summary: Summary, scorer: str | None) -> tuple[str, Estimate] | None:
    """The score for where there is room for one: the first scorer's plain value, or any."""
    found = [one for one in summary.measures if one.estimates]
    found.sort(key=lambda one: (one.scorer != scorer, one.metric != ""))
    if not found:
        return None
    reducer, estimate = next(iter(found[0].estimates.items()))
    return f"{_short(words.metric_name(found[0].scorer, found[0].metric))}, {reducer}", estimate


def _labels(measures: Iterable[Measure]) -> str:
    rows = [
        (
            cell(_short(words.metric_name(one.scorer, one.metric))),
            cell(_short(label)),
            number(words.count(many)),
            number(words.share(many, sum(one.labels.values()))),
            number("no number" if graded(label) is None else words.score(graded(label))),
        )
        for one in measures
        for label, many in sorted(one.labels.items(), key=lambda found: (-found[1], found[0]))
    ]
    heads = ("Score", "Label", "#Attempts", "#Share", "#Counts as")
    return section("labels", "Scores that are words", table(heads, rows))


def _groups(summary: Summary, measures: Iterable[Measure], reducer: str) -> str:
    found = [(one, key, groups) for one in measures for key, groups in one.groups.items()]
    plots = figures(_plot(*one) for one in found[:MOST_PLOTS])
    notes = []
    if plots:
        notes.append(
            f"Reduced by {reducer}. The lines are intervals of 95 %, the numbers standard errors."
        )
    if len(found) > MOST_PLOTS:
        notes.append(f"{len(found) - MOST_PLOTS:,} more plots are not shown.")
    if summary.ungrouped:
        keys = ", ".join(map(_short, summary.ungrouped[:20]))
        notes.append(f"Too many different values for a breakdown: {keys}.")
    return section("groups", "Scores by group", plots, paragraph(" ".join(notes)))


def _plot(measure: Measure, key: str, groups: dict[str, Group]) -> str:
    name = words.metric_name(measure.scorer, measure.metric)
    told = [_bar(value, groups[value]) for value in sorted(groups, key=words.order)]
    shares = all(0 <= bar.value <= 1 for bar in told)
    title, unit = f"{_short(name)} by {_short(key)}", f"mean of {_short(name)}"
    return bars(title, unit, told, within=(0.0, 1.0) if shares else None)


def _bar(name: str, group: Group) -> Bar:
    error = group.standard_error
    low, high = (None, None) if error is None else normal(group.mean, error)
    margin = "" if error is None else f" ± {words.score(error)}"
    told = f"{words.score(group.mean)}{margin} (n = {group.samples:,})"
    return Bar(name or "(empty)", group.mean, low, high, told)


def _short(name: str) -> str:
    return words.shortened(name, LONGEST)
