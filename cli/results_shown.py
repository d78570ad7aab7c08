"""The results of a batch as a person reads them."""

from collections.abc import Iterator, Mapping
from typing import Any

from evaluation.spec import BatchSpec
from evaluation.statistics import Interval
from evaluation.summary import Counts, Estimate, Measure, Summary
from events.usage import Usage

Example = Mapping[str, Any]
"""A row of the table of results."""

LONGEST = 300
"""Characters of what went wrong."""


def lines_of(spec: BatchSpec, summary: Summary, examples: Mapping[str, Example]) -> Iterator[str]:
    """`examples` has a failed attempt for each kind of failure."""
    counts = summary.counts
    epochs = f", {spec.epochs} epochs each" if spec.epochs > 1 else ""
    yield _line("batch", f"{spec.name}, {spec.agent.model.name}{epochs}")
    yield _line("counts", _counts(counts))
    for measure in summary.measures:
        yield from _measure(measure)
    yield from (_line(name, told) for name, told in _spent(summary))
    if summary.limits:
        yield _line("limits", _counted(summary.limits))
    for kind, count in summary.failures.items():
        yield _line("failed", f"{count} {kind}{_example(examples.get(kind))}")
    if summary.ungrouped:
        yield _line("ungrouped", f"{', '.join(summary.ungrouped)}: too many values")


def failed_line(row: Example) -> str:
    """A failed attempt."""
    where = f"{row['sample']}, epoch {row['epoch']}, attempt {row['attempt']}"
    return f"{where}: {_why(row)} ({row['conversation_id']})"


def _line(name: str, told: str) -> str:
    return f"{name:<12} {told}"


def _counts(counts: Counts) -> str:
    parts = {
        "scored": counts.scored,
        "ended by a limit": counts.limited,
        "failed": counts.failed,
        "running": counts.running,
        "without a result": counts.missing,
    }
    return f"{counts.expected:,} expected = " + " + ".join(
        f"{count:,} {name}" for name, count in parts.items() if count or name == "scored"
    )


def _measure(measure: Measure) -> Iterator[str]:
    name = f"{measure.scorer}/{measure.metric}" if measure.metric else measure.scorer
    for reducer, estimate in measure.estimates.items():
        yield _line(name, f"{reducer:<10} {_estimate(estimate)}")
    for key, groups in measure.groups.items():
        if all(group.samples == 1 for group in groups.values()):  # as good as an id
            continue
        for value, group in groups.items():
            told = f"{group.mean:.4f}{_error(group.standard_error)}, {_samples(group.samples)}"
            yield _line("", f"{key} = {value}: {told}")
    if measure.labels:
        yield _line("" if measure.estimates else name, f"labels: {_counted(measure.labels)}")


def _estimate(estimate: Estimate) -> str:
    intervals = [("bootstrap", estimate.interval), ("Wilson", estimate.wilson)]
    told = [f"{name} {_interval(ends)}" for name, ends in intervals if ends is not None]
    sure = f" (95 %: {', '.join(told)})" if told else ""
    error = _error(estimate.standard_error)
    return f"{estimate.mean:.4f}{error}{sure}, {_samples(estimate.samples)}"


def _interval(ends: Interval) -> str:
    return f"{ends.low:.4f} to {ends.high:.4f}"


def _error(standard_error: float | None) -> str:
    return "" if standard_error is None else f" ± {standard_error:.4f}"


def _samples(count: int) -> str:
    return f"{count:,} sample{'' if count == 1 else 's'}"


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


def _spent(summary: Summary) -> Iterator[tuple[str, str]]:
    yield "tokens", _tokens(summary.usage)
    yield "cost", f"${summary.usage.cost:.4f}"
    if summary.grading.prompt_tokens or summary.grading.cost:
        yield "grading", f"{_tokens(summary.grading)}, ${summary.grading.cost:.4f}"
    each = f", {summary.seconds / summary.attempts:.1f} s each" if summary.attempts else ""
    yield "time", f"{summary.seconds:,.1f} s in {summary.attempts:,} attempts{each}"
    yield "turns", f"{summary.turns:,}"
    yield "tools", f"{summary.tool_calls:,} calls, {summary.tool_errors:,} errors"
    yield "stuck", f"{summary.stuck:,}"


def _tokens(usage: Usage) -> str:
    return f"{usage.prompt_tokens:,} in, {usage.completion_tokens:,} out"


def _example(row: Example | None) -> str:
    return f", such as {failed_line(row)}" if row else ""


def _why(row: Example) -> str:
    detail = " ".join(row.get("failure_detail", "").split())
    short = detail if len(detail) <= LONGEST else f"{detail[:LONGEST]}..."
    return ": ".join(filter(None, (row["failure_kind"], row["failure_code"], short)))
