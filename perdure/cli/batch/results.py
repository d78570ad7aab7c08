"""`perdure batch results`: print a summary or a table of a batch's results."""

import json
import sys
from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import IO, Any

from perdure.cli.batch.results_view import failed_attempt_line, summary_lines
from perdure.cli.declarations.batches import Results, ResultsFormat
from perdure.cli.environment import open_batch
from perdure.cli.output import escape_controls, open_output
from perdure.datasets.parquet import import_pyarrow
from perdure.datasets.results_table import FIXED_COLUMNS, ResultsTable, TableRow
from perdure.errors import Invalid
from perdure.evaluation.summary import Summary
from perdure.evaluation.tally import Tally
from perdure.exports.json_text import json_document
from perdure.operations.error_reports import EXIT_FAILED, EXIT_OK
from perdure.storage.batches import BatchFolder, BatchRecord, read_current_results

EXAMPLE_COLUMNS = (
    *("sample", "epoch", "attempt"),
    *("failure_kind", "failure_code", "failure_detail", "conversation_id"),
)
"""Columns of the example of a failure."""


async def results(options: Results) -> int:
    format, failed = options.format, options.failed
    if format is ResultsFormat.parquet:
        _check_parquet(options.path)
    folder, record = await open_batch(options.name)
    with TemporaryFile() as spool:
        table, summary, examples = await _collect_results(folder, record, failed, spool)
        with open_output(options.path) as file:
            if format is ResultsFormat.csv:
                table.write_csv(file)
            elif format is ResultsFormat.parquet:
                table.write_parquet(file)
            elif format is ResultsFormat.json:
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
    folder: BatchFolder, record: BatchRecord, failed: bool, spool: IO[bytes]
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
