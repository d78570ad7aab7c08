"""`perdure batch results`: print a summary or a table of a batch's results."""

import json
import sys
from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import IO, Any

from perdure.cli.batch.report import load_batch
from perdure.cli.batch.results_view import failed_attempt_line, summary_lines
from perdure.cli.options import ResultsFormat
from perdure.cli.output import escape_controls
from perdure.cli.output_files import open_output
from perdure.datasets.parquet import import_pyarrow
from perdure.datasets.results_table import ResultsTable, TableRow
from perdure.errors import Invalid
from perdure.evaluation.result import AttemptFailure, AttemptResult
from perdure.evaluation.summary import Summary, Tally
from perdure.exports.json_text import json_document
from perdure.operations.error_reports import EXIT_FAILED, EXIT_OK
from perdure.storage.batches import BatchFolder, BatchRecord, read_current_results


async def execute(name: str, format: ResultsFormat, output: str, failed: bool) -> int:
    if format is ResultsFormat.parquet:
        _check_parquet(output)
    folder, record = await load_batch(name)
    with TemporaryFile() as spool:
        table, summary, examples = await _collect_results(folder, record, failed, spool)
        with open_output(output) as file:
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
            if attempt.failure is not None:
                examples.setdefault(
                    attempt.failure.kind, _example_row(result.id, attempt, attempt.failure)
                )
    return table, tally.summary(record.expected_attempts), examples


def _example_row(sample: str, attempt: AttemptResult, failure: AttemptFailure) -> TableRow:
    return {
        "sample": sample,
        "epoch": attempt.epoch,
        "attempt": attempt.number,
        "failure_kind": failure.kind,
        "failure_code": failure.code,
        "failure_detail": failure.detail,
        "conversation_id": attempt.conversation_id,
    }


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
