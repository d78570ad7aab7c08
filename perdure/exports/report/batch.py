"""The page about a batch: one file that needs no other, also for 100,000 samples."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from urllib.parse import quote

from perdure.evaluation.score import metric_number
from perdure.evaluation.statistics import MAX_BOOTSTRAP_VALUES
from perdure.evaluation.summary import Group, Measure, Summary
from perdure.exports.report.collect import BatchDescription, Collected, Row, RowKind
from perdure.exports.report.formatting import (
    NOTHING,
    count,
    duration,
    interval,
    metric_name,
    money,
    number_first,
    score,
    share,
    shorten,
)
from perdure.exports.report.page import render
from perdure.exports.report.plots import (
    BarChart,
    HistogramPlot,
    bar_chart,
    histogram_plot,
    mean_bar,
)
from perdure.exports.report.settings import settings_of, specification

MAX_MEASURES = 100
MAX_CHARTS = 40

ROW_KINDS: dict[RowKind, str] = {
    "failed": "failed",
    "wrong": "scored below 1",
    "limited": "ended by a limit",
    "right": "all else",
}


def page(batch: BatchDescription, collected: Collected) -> Iterator[bytes]:
    """Render the page of a batch, piece by piece."""
    summary, spec = collected.summary(batch), batch.spec
    measures, rows = summary.measures[:MAX_MEASURES], collected.rows()
    charts = [
        _chart(measure, key, groups)
        for measure in measures
        for key, groups in measure.groups.items()
    ]
    return render(
        "batch.html",
        title=spec.name,
        kicker="Batch evaluation",
        facts=(
            f"{spec.agent.model.name} on {spec.dataset.path or spec.dataset.function}",
            _size(batch, collected),
            batch.made,
        ),
        about=batch,
        spec=spec,
        summary=summary,
        tiles=list(_tiles(batch, collected, summary)),
        parts=list(_parts(batch, summary)),
        estimates=[row for measure in measures for row in _estimates(measure)],
        max_resampled=MAX_BOOTSTRAP_VALUES,
        hidden_measures=len(summary.measures) - len(measures),
        labels=[row for measure in measures for row in _labels(measure)],
        charts=charts[:MAX_CHARTS],
        hidden_charts=max(0, len(charts) - MAX_CHARTS),
        histograms=[plot for plot in _histograms(collected) if plot is not None],
        causes=[
            (
                *(cause.kind, cause.code, count(cause.final), count(cause.repeated)),
                *(cause.example or NOTHING, cause.sample),
            )
            for cause in collected.causes()
        ],
        limit_rows=[
            (code, count(hits), share(hits, summary.counts.done))
            for code, hits in sorted(summary.limits.items(), key=lambda row: (-row[1], row[0]))
        ],
        totals=list(_totals(summary)) if summary.attempts else [],
        settings=list(settings_of(spec)),
        specification=specification(spec),
        rows=rows,
        rows_note=_rows_note(collected, rows),
        kinds=ROW_KINDS,
        shown_kinds={row.kind for row in rows},
        links=partial(_links, batch),
    )


def _histograms(collected: Collected) -> Iterator[HistogramPlot | None]:
    yield histogram_plot("Cost", "US dollars", collected.costs, money)
    yield histogram_plot("Time", "time from start to end", collected.seconds, duration)
    yield histogram_plot("Turns", "answers of the model", collected.turns, count)


def _size(batch: BatchDescription, collected: Collected) -> str:
    samples = batch.expected // batch.spec.epochs
    epochs = f", {batch.spec.epochs:,} epochs each" if batch.spec.epochs > 1 else ""
    return f"{samples:,} samples{epochs}; {collected.samples:,} have a result"


def _tiles(
    batch: BatchDescription, collected: Collected, summary: Summary
) -> Iterator[tuple[str, str, str]]:
    counts = summary.counts
    first = next((scorer.score_name for scorer in batch.spec.scorers), None)
    measures = [measure for measure in summary.measures if measure.estimates]
    measures.sort(key=lambda measure: (measure.scorer != first, measure.metric != ""))
    for measure in measures[:1]:
        reducer, estimate = next(iter(measure.estimates.items()))
        error = estimate.standard_error
        margin = "" if error is None else f"± {score(error)}"
        name = shorten(metric_name(measure.scorer, measure.metric))
        yield "Score", score(estimate.mean), f"{margin} {name}, {reducer}"
    done = f"{counts.done:,} of {counts.expected:,}"
    yield "Done", share(counts.done, counts.expected), done
    yield "Failed", count(counts.failed), share(counts.failed, counts.expected)
    cost = summary.usage.cost + summary.grading.cost
    yield "Cost", money(cost), f"{summary.attempts:,} attempts"
    yield "Median time", duration(collected.seconds.quantile(0.5)), "of a sample's epoch"
    yield "Median turns", count(collected.turns.quantile(0.5)), "answers of the model"


def _parts(batch: BatchDescription, summary: Summary) -> Iterator[tuple[str, int, str]]:
    counts, is_known = summary.counts, batch.running is not None
    yield "scored", counts.scored, "good"
    yield "ended by a limit", counts.limited, "warn"
    yield "failed, without a score", counts.failed, "bad"
    if is_known:
        yield "running", counts.running, "busy"
    missing = "missing" if is_known else "no result yet (running or not started)"
    yield missing, counts.missing, "idle"


def _estimates(measure: Measure) -> Iterator[tuple[str, ...]]:
    for name, estimate in measure.estimates.items():
        yield (
            *(shorten(measure.scorer), shorten(measure.metric) or NOTHING, name),
            *(count(estimate.samples), score(estimate.mean), score(estimate.standard_error)),
            *(interval(estimate.interval), interval(estimate.wilson)),
        )


def _labels(measure: Measure) -> Iterator[tuple[str, ...]]:
    name = shorten(metric_name(measure.scorer, measure.metric))
    whole = sum(measure.labels.values())
    for label, hits in sorted(measure.labels.items(), key=lambda row: (-row[1], row[0])):
        worth = metric_number(label)
        counts_as = "no number" if worth is None else score(worth)
        yield name, shorten(label), count(hits), share(hits, whole), counts_as


def _chart(measure: Measure, key: str, groups: dict[str, Group]) -> BarChart | None:
    name = shorten(metric_name(measure.scorer, measure.metric))
    bars = [
        mean_bar(value, groups[value].mean, groups[value].standard_error, groups[value].samples)
        for value in sorted(groups, key=number_first)
    ]
    limits = (0.0, 1.0) if all(0 <= bar.value <= 1 for bar in bars) else None
    return bar_chart(f"{name} by {shorten(key)}", f"mean of {name}", bars, limits)


def _totals(summary: Summary) -> Iterator[tuple[str, str, str]]:
    usage, grading = summary.usage, summary.grading
    totals: list[tuple[str, float, Callable[[float], str]]] = [
        ("Cost of the agent", usage.cost, money),
        ("Tokens of prompts", usage.prompt_tokens, count),
        ("… of these read from the cache", usage.cached_tokens, count),
        ("… of these written to the cache", usage.cache_write_tokens, count),
        ("Tokens of answers", usage.completion_tokens, count),
        ("… of these for reasoning", usage.reasoning_tokens, count),
        ("Time of models", usage.latency, duration),
        ("Time from start to end", summary.seconds, duration),
        ("Turns", summary.turns, count),
        ("Tool calls", summary.tool_calls, count),
        ("… of these failed", summary.tool_errors, count),
    ]
    if grading.cost or grading.prompt_tokens:
        tokens = grading.prompt_tokens + grading.completion_tokens
        totals += [("Cost of grading", grading.cost, money), ("Tokens of grading", tokens, count)]
    for name, total, form in totals:
        mean = total / summary.attempts
        yield name, form(total), f"{mean:,.1f}" if form is count else form(mean)


def _rows_note(collected: Collected, rows: Sequence[Row]) -> str:
    whole, shown = collected.row_counts.total(), len(rows)
    order = "What failed comes first, then what scored below 1."
    if shown == whole:
        return f"All {whole:,} with a result. {order}"
    hidden = collected.row_counts - Counter(row.kind for row in rows)
    kinds = ", ".join(
        f"{hidden[kind]:,} {name}" for kind, name in ROW_KINDS.items() if hidden[kind]
    )
    return (
        f"{shown:,} of {whole:,} with a result. {order} Not shown: {whole - shown:,} ({kinds}); "
        "they count in all numbers above."
    )


def _links(batch: BatchDescription, conversation_id: str) -> Iterator[tuple[str, str]]:
    """Yield the names and addresses of the pages of a conversation."""
    name = quote(conversation_id, safe="", errors="replace")
    if batch.conversations is not None:
        yield "page", f"{batch.conversations}/{name}.html"
    if batch.ui is not None:
        namespace = quote(batch.namespace, safe="", errors="replace")
        ui = batch.ui.rstrip("/")
        yield "workflow", f"{ui}/namespaces/{namespace}/workflows/conv-{name}"
