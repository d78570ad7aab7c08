"""`perdure batch results`: what came of a batch, in short or as a table."""

import json
import sys
from collections.abc import Iterator
from enum import StrEnum
from tempfile import TemporaryFile
from typing import IO, Annotated, Any

import typer

from cli.failures import FAILED, OK
from cli.output import Format as Printed
from cli.output import plain
from cli.performing import command_app, perform
from cli.results_shown import failed_line, lines_of
from cli.stack import batch_of
from cli.writing import opened
from client.errors import Invalid, NotFound
from evaluation.result import Attempt, Failure
from evaluation.summary import Summary
from evaluation.tally import Tally
from exports.json_text import document
from storage.batches import BatchFolder, Kept
from storage.counted import counted
from storage.results_table import NoParquet, Row, Table, parquet_library

app = command_app()


class Shape(StrEnum):
    """What results are written as."""

    text = "text"
    json = "json"
    csv = "csv"
    parquet = "parquet"


@app.command("results")
def command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The batch's name.")],
    shape: Annotated[
        Shape,
        typer.Option(
            "--format", metavar="FORMAT", help="text or json: in short; csv or parquet: a table."
        ),
    ] = Shape.text,
    output: Annotated[
        str, typer.Option("--output", metavar="PATH", help="A file; - is stdout.")
    ] = "-",
    failed: Annotated[
        bool, typer.Option("--failed", help="List what failed, and nothing else of the attempts.")
    ] = False,
) -> None:
    """Tell what came of a batch: scores, errors, cost, and a row for each attempt as a table.

    Only the store is needed. In a table, epochs and attempts count from 0, and texts stand as they
    are: a spreadsheet takes one that begins with = for a formula. The exit code is 1 where
    something failed or has no result yet.
    """
    perform(_results(name, shape, output, failed), _printed(shape))


def _printed(shape: Shape) -> Printed:
    """How errors are told."""
    return Printed.json if shape is Shape.json else Printed.text


async def _results(name: str, shape: Shape, output: str, failed: bool) -> int:
    if shape is Shape.parquet:
        _check_parquet(output)
    folder = await batch_of(name)
    kept = await folder.kept()
    if kept is None:
        raise NotFound(f"There is no batch {name!r}.")
    with TemporaryFile() as spool:
        table, summary, examples = await _gathered(folder, kept, failed, spool)
        with opened(output) as file:
            if shape is Shape.csv:
                table.write_csv(file)
            elif shape is Shape.parquet:
                table.write_parquet(file)
            elif shape is Shape.json:
                file.writelines(_json(kept, summary, examples, table if failed else None))
            elif failed:
                file.writelines(_text(map(failed_line, table.rows())))
            else:
                file.writelines(_text(lines_of(kept.spec, summary, examples)))
    return FAILED if summary.counts.failed or summary.counts.missing else OK


def _check_parquet(output: str) -> None:
    """Before anything is read. Raises Invalid."""
    if output == "-" and sys.stdout.isatty():
        raise Invalid("Parquet is not for a terminal.", "Say where to: --output FILE.")
    try:
        parquet_library()
    except NoParquet as error:
        raise Invalid(str(error)) from error


async def _gathered(
    folder: BatchFolder, kept: Kept, failed: bool, spool: IO[bytes]
) -> tuple[Table, Summary, dict[str, Row]]:
    """All results, read once; and a failed attempt for each kind of failure."""
    table, tally = Table(spool), Tally(kept.spec.reducers)
    examples: dict[str, Row] = {}
    async for result in counted(folder, kept):
        tally.add(result)
        lost = [one for one in result.final if one.failure is not None]
        table.add(result, lost if failed else result.attempts)
        for one in lost:
            if one.failure is not None:
                examples.setdefault(one.failure.kind, _example(result.id, one, one.failure))
    return table, tally.summary(kept.expected), examples


def _example(sample: str, attempt: Attempt, failure: Failure) -> Row:
    return {
        "sample": sample,
        "epoch": attempt.epoch,
        "attempt": attempt.number,
        "failure_kind": failure.kind,
        "failure_code": failure.code,
        "failure_detail": failure.detail,
        "conversation_id": attempt.conversation_id,
    }


def _json(
    kept: Kept, summary: Summary, examples: dict[str, Row], failed: Table | None
) -> Iterator[bytes]:
    head: dict[str, Any] = {
        "batch": kept.spec.name,
        "model": kept.spec.agent.model.name,
        "epochs": kept.spec.epochs,
        **summary.model_dump(mode="json"),
        "examples": examples,
    }
    if failed is not None:
        return document(head, "failed", failed.rows())
    return iter([json.dumps(head, ensure_ascii=False, indent=2).encode(errors="replace"), b"\n"])


def _text(lines: Iterator[str]) -> Iterator[bytes]:
    return (plain(line).encode(errors="replace") + b"\n" for line in lines)
