"""`perdure batch results`: print a summary or a table of a batch's results."""

import json
import sys
from collections.abc import Iterator, Mapping
from tempfile import TemporaryFile
from typing import IO, Any

from perdure.cli.declarations.batches import Results
from perdure.cli.environment import open_batch
from perdure.cli.output import escape_controls, open_output, shorten_line
from perdure.datasets.results_table import FIXED_COLUMNS, ResultsTable, TableRow
from perdure.datasets.rows import import_pyarrow
from perdure.errors import Invalid
from perdure.evaluation.spec import BatchSpec
from perdure.evaluation.summary import Counts, Estimate, Measure, Summary, Tally
from perdure.events.usage import Usage
from perdure.exports.json_text import json_document
from perdure.operations.error_reports import EXIT_FAILED, EXIT_OK
from perdure.storage.batches import BatchRecord, read_current_results
from perdure.storage.readable_batch import ReadableBatch
from perdure.wording import count

EXAMPLE_COLUMNS = (
    *("sample", "epoch", "attempt"),
    *("failure_kind", "failure_code", "failure_detail", "conversation_id"),
)
"""Columns of the example of a failure."""


async def results(options: Results) -> int:
    format, failed = options.format, options.failed
    if format == "parquet":
        _check_parquet(options.path)
    folder, record = await open_batch(options.name)
    with TemporaryFile() as spool:
        table, summary, examples = await _collect_results(folder, record, failed, spool)
        with open_output(options.path) as file:
            if format == "csv":
                table.write_csv(file)
            elif format == "parquet":
                table.write_parquet(file)
            elif format == "json":
                file.writelines(_encode_json(record, summary, examples, table if failed else None))
            elif failed:
                file.writelines(_encode_lines(map(failed_attempt_line, table.rows())))
            else:
                file.writelines(_encode_lines(summary_lines(record.spec, summary, examples)))
    return EXIT_FAILED if summary.counts.failed or summary.counts.missing else EXIT_OK


def _check_parquet(output: str) -> None:
    """Raises Invalid where Parquet cannot be written, before anything is read."""
    if output == "-" and sys.stdout.isatty():
        raise Invalid("Parquet is not for a terminal.", "Say where to: --output FILE.")
    import_pyarrow()


async def _collect_results(
    folder: ReadableBatch, record: BatchRecord, failed: bool, spool: IO[bytes]
) -> tuple[ResultsTable, Summary, dict[str, TableRow]]:
    """Read all results once: a table, a summary, and a failed attempt for each kind of failure."""
    table, tally = ResultsTable(spool), Tally(record.spec.reducers)
    examples: dict[str, TableRow] = {}
    async for result in read_current_results(folder, record):
        tally.add(result)
        failures = [attempt for attempt in result.final_attempts if attempt.failure is not None]
        table.add(result, failures if failed else result.attempts)
        for attempt in failures:
            row = {name: FIXED_COLUMNS[name][1](result, attempt) for name in EXAMPLE_COLUMNS}
            examples.setdefault(row["failure_kind"], row)
    return table, tally.summary(record.expected_attempts), examples


def _encode_json(
    record: BatchRecord,
    summary: Summary,
    examples: dict[str, TableRow],
    failed: ResultsTable | None,
) -> Iterator[bytes]:
    head: dict[str, Any] = {
        "batch": record.spec.name,
        "model": record.spec.agent.model.name,
        "epochs": record.spec.epochs,
        **summary.model_dump(mode="json"),
        "examples": examples,
    }
    if failed is not None:
        return json_document(head, "failed", failed.rows())
    return iter([json.dumps(head, ensure_ascii=False, indent=2).encode(errors="replace"), b"\n"])


def _encode_lines(lines: Iterator[str]) -> Iterator[bytes]:
    return (escape_controls(line).encode(errors="replace") + b"\n" for line in lines)


def summary_lines(
    spec: BatchSpec, summary: Summary, examples: Mapping[str, TableRow]
) -> Iterator[str]:
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
    for kind, number in summary.failures.items():
        example = f", such as {failed_attempt_line(examples[kind])}" if kind in examples else ""
        yield _line("failed", f"{number} {kind}{example}")
    if summary.ungrouped:
        yield _line("ungrouped", f"{', '.join(summary.ungrouped)}: too many values")


def failed_attempt_line(row: TableRow) -> str:
    """Render a failed attempt as one line."""
    attempt = f"{row['sample']}, epoch {row['epoch']}, attempt {row['attempt']}"
    detail = shorten_line(row.get("failure_detail", ""))
    reason = ": ".join(filter(None, (row["failure_kind"], row["failure_code"], detail)))
    return f"{attempt}: {reason} ({row['conversation_id']})"


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
    yield "time", f"{summary.seconds:,.1f} s in {count(summary.attempts, 'attempt')}{each}"
    yield "turns", f"{summary.turns:,}"
    yield "tools", f"{count(summary.tool_calls, 'call')}, {count(summary.tool_errors, 'error')}"
    yield "stuck", f"{summary.stuck:,}"


def _format_tokens(usage: Usage) -> str:
    return f"{usage.prompt_tokens:,} in, {usage.completion_tokens:,} out"
