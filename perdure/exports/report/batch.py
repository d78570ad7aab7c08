"""The page about a batch: one file that needs no other, also for 100,000 samples."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from urllib.parse import quote

from perdure.evaluation.score import metric_number
from perdure.evaluation.statistics import MAX_BOOTSTRAP_VALUES
from perdure.evaluation.summary import Group, Measure, Summary
from perdure.exports.report.collect import BatchDescription, Collected, Row, RowKind
from perdure.exports.report.formatting import metric_name, number_first
from perdure.exports.report.page import render
from perdure.exports.report.plots import Bar, mean_bar
from perdure.exports.report.settings import settings_of, specification
from perdure.wording import count

MAX_MEASURES = 100
MAX_CHARTS = 40

ROW_KINDS: dict[RowKind, str] = {
    "failed": "failed",
    "wrong": "scored below 1",
    "limited": "ended by a limit",
    "right": "all else",
}


def page(batch: BatchDescription, collected: Collected) -> Iterator[bytes]:
    summary, spec = collected.summary(batch), batch.spec
    measures, rows = summary.measures[:MAX_MEASURES], collected.rows()
    charts = [
        (metric_name(measure.scorer, measure.metric), key, _bars(groups))
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
        collected=collected,
        decisive=_decisive_measure(batch, summary),
        measures=measures,
        max_resampled=MAX_BOOTSTRAP_VALUES,
        hidden_measures=len(summary.measures) - len(measures),
        metric_number=metric_number,
        charts=charts[:MAX_CHARTS],
        hidden_charts=max(0, len(charts) - MAX_CHARTS),
        settings=settings_of(spec),
        specification=specification(spec),
        rows=rows,
        rows_note=_rows_note(collected, rows),
        kinds=ROW_KINDS,
        shown_kinds={row.kind for row in rows},
        links=partial(_links, batch),
    )


def _decisive_measure(batch: BatchDescription, summary: Summary) -> Measure | None:
    """Return the plain value of the first scorer, or else the nearest measure with numbers."""
    first = next((scorer.score_name for scorer in batch.spec.scorers), None)
    measures = (measure for measure in summary.measures if measure.estimates)
    return min(measures, key=lambda item: (item.scorer != first, item.metric != ""), default=None)


def _size(batch: BatchDescription, collected: Collected) -> str:
    samples = batch.expected // batch.spec.epochs
    epochs = f", {batch.spec.epochs:,} epochs each" if batch.spec.epochs > 1 else ""
    return f"{count(samples, 'sample')}{epochs}; {collected.samples:,} have a result"


def _bars(groups: dict[str, Group]) -> list[Bar]:
    return [
        mean_bar(value, groups[value].mean, groups[value].standard_error, groups[value].samples)
        for value in sorted(groups, key=number_first)
    ]


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
    name = quote(conversation_id, safe="", errors="replace")
    if batch.conversations is not None:
        yield "page", f"{batch.conversations}/{name}.html"
    if batch.ui is not None:
        namespace = quote(batch.namespace, safe="", errors="replace")
        ui = batch.ui.rstrip("/")
        prefix = quote(batch.workflow_prefix, safe="")
        yield "workflow", f"{ui}/namespaces/{namespace}/workflows/{prefix}{name}"
