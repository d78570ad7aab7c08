"""The results of a batch as lines of text."""

from collections.abc import Iterator, Mapping
from typing import Any

from perdure.evaluation.spec import BatchSpec
from perdure.evaluation.summary import Counts, Estimate, Measure, Summary
from perdure.events.usage import Usage

Row = Mapping[str, Any]
"""A row of the table of results."""

MAX_DETAIL_CHARS = 300
"""The rest of a failure's detail is cut off."""


def summary_lines(spec: BatchSpec, summary: Summary, examples: Mapping[str, Row]) -> Iterator[str]:
    """Render a summary; `examples` has a failed attempt for each kind of failure."""
    counts = summary.counts
    epochs = f", {spec.epochs} epochs each" if spec.epochs > 1 else ""
    yield _line("batch", f"{spec.name}, {spec.agent.model.name}{epochs}")
    yield _line("counts", _format_expected(counts))
    for measure in summary.measures:
        yield from _measure_lines(measure)
    yield from (_line(name, text) for name, text in _cost_fields(summary))
    if summary.limits:
        yield _line("limits", _format_counts(summary.limits))
    for kind, count in summary.failures.items():
        yield _line("failed", f"{count} {kind}{_format_example(examples.get(kind))}")
    if summary.ungrouped:
        yield _line("ungrouped", f"{', '.join(summary.ungrouped)}: too many values")


def failed_attempt_line(row: Row) -> str:
    """Render a failed attempt as one line."""
    attempt = f"{row['sample']}, epoch {row['epoch']}, attempt {row['attempt']}"
    return f"{attempt}: {_failure_reason(row)} ({row['conversation_id']})"


def _line(name: str, text: str) -> str:
    return f"{name:<12} {text}"


def _format_expected(counts: Counts) -> str:
    others = {
        "ended by a limit": counts.limited,
        "failed": counts.failed,
        "running": counts.running,
        "without a result": counts.missing,
    }
    parts = [f"{count:,} {name}" for name, count in others.items() if count]
    return f"{counts.expected:,} expected = {' + '.join([f'{counts.scored:,} scored', *parts])}"


def _measure_lines(measure: Measure) -> Iterator[str]:
    name = f"{measure.scorer}/{measure.metric}" if measure.metric else measure.scorer
    for reducer, estimate in measure.estimates.items():
        yield _line(name, f"{reducer:<10} {_format_estimate(estimate)}")
    for key, groups in measure.groups.items():
        if all(group.samples == 1 for group in groups.values()):  # the key is as good as an id
            continue
        for value, group in groups.items():
            error, samples = _format_error(group.standard_error), _format_samples(group.samples)
            yield _line("", f"{key} = {value}: {group.mean:.4f}{error}, {samples}")
    if measure.labels:
        yield _line("" if measure.estimates else name, f"labels: {_format_counts(measure.labels)}")


def _format_estimate(estimate: Estimate) -> str:
    intervals = {"bootstrap": estimate.interval, "Wilson": estimate.wilson}
    parts = [
        f"{name} {ends.low:.4f} to {ends.high:.4f}"
        for name, ends in intervals.items()
        if ends is not None
    ]
    confidence = f" (95 %: {', '.join(parts)})" if parts else ""
    error = _format_error(estimate.standard_error)
    return f"{estimate.mean:.4f}{error}{confidence}, {_format_samples(estimate.samples)}"


def _format_error(standard_error: float | None) -> str:
    return "" if standard_error is None else f" ± {standard_error:.4f}"


def _format_samples(count: int) -> str:
    return f"{count:,} sample{'' if count == 1 else 's'}"


def _format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


def _cost_fields(summary: Summary) -> Iterator[tuple[str, str]]:
    yield "tokens", _format_tokens(summary.usage)
    yield "cost", f"${summary.usage.cost:.4f}"
    if summary.grading.prompt_tokens or summary.grading.cost:
        yield "grading", f"{_format_tokens(summary.grading)}, ${summary.grading.cost:.4f}"
    each = f", {summary.seconds / summary.attempts:.1f} s each" if summary.attempts else ""
    yield "time", f"{summary.seconds:,.1f} s in {summary.attempts:,} attempts{each}"
    yield "turns", f"{summary.turns:,}"
    yield "tools", f"{summary.tool_calls:,} calls, {summary.tool_errors:,} errors"
    yield "stuck", f"{summary.stuck:,}"


def _format_tokens(usage: Usage) -> str:
    return f"{usage.prompt_tokens:,} in, {usage.completion_tokens:,} out"


def _format_example(row: Row | None) -> str:
    return f", such as {failed_attempt_line(row)}" if row else ""


def _failure_reason(row: Row) -> str:
    detail = " ".join(row.get("failure_detail", "").split())
    shortened = detail if len(detail) <= MAX_DETAIL_CHARS else f"{detail[:MAX_DETAIL_CHARS]}..."
    return ": ".join(filter(None, (row["failure_kind"], row["failure_code"], shortened)))
