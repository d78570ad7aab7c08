"""The attempts of a batch as a table: a row each, as CSV or Parquet.

`score.NAME` has numbers, `label.NAME` words; NAME is the scorer, or `scorer/metric` where it has
several. `metadata.KEY` has the type that all its values have, and else text: a string as it is,
anything else as JSON. A target of several alternatives is a JSON list. Values are written as they
are: a spreadsheet takes a text that begins with `=` for a formula.
"""

import csv
import importlib
import io
import json
from collections.abc import Iterable, Iterator
from typing import IO, Any, Literal, TypeAlias

from evaluation.result import Attempt, SampleResult
from exports.json_text import compact

Kind: TypeAlias = Literal["text", "number", "integer", "boolean"]
Row: TypeAlias = dict[str, Any]

FIRST: dict[str, Kind] = {
    "sample": "text",
    "epoch": "integer",
    "attempt": "integer",
    "is_final": "boolean",
    "status": "text",
    "limit": "text",
    "failure_kind": "text",
    "failure_code": "text",
    "failure_detail": "text",
}

LAST: dict[str, Kind] = {
    "answer": "text",
    "target": "text",
    "cost": "number",
    "tokens": "integer",
    "prompt_tokens": "integer",
    "completion_tokens": "integer",
    "grading_cost": "number",
    "grading_tokens": "integer",
    "seconds": "number",
    "turns": "integer",
    "tool_calls": "integer",
    "tool_errors": "integer",
    "stuck": "boolean",
    "conversation_id": "text",
}

MOST_COLUMNS = 1000
"""Of scores, labels and metadata; what has no column any more is in `others`, as JSON."""

OTHERS = "others"

AT_ONCE = 1000
"""Rows of a group of rows in Parquet, at most."""

MOST_BYTES = 16 * 1024 * 1024
"""Of such a group, unless a single row is larger."""

INT64 = range(-(2**63), 2**63)


class NoParquet(RuntimeError):
    """pyarrow is not there; the text is a sentence that says what to do."""


class Table:
    """Rows wait in `spool`, a file of our own, until all columns are known."""

    def __init__(self, spool: IO[bytes]) -> None:
        self._spool = spool
        self._found: dict[str, Kind | None] = {}
        self._has_others = False

    def add(self, result: SampleResult, attempts: Iterable[Attempt]) -> None:
        """A row for each of these attempts at the sample."""
        final = {(one.epoch, one.number) for one in result.final}
        for attempt in attempts:
            row = _row(result, attempt, (attempt.epoch, attempt.number) in final)
            self._spool.write(compact(self._fitted(row, _free(result, attempt))) + b"\n")

    @property
    def columns(self) -> dict[str, Kind]:
        found = {name: kind or "text" for name, kind in sorted(self._found.items())}
        by_group = [
            {name: kind for name, kind in found.items() if name.startswith(group)}
            for group in ("score.", "label.", "metadata.")
        ]
        others: dict[str, Kind] = {OTHERS: "text"} if self._has_others else {}
        return {**FIRST, **by_group[0], **by_group[1], **LAST, **by_group[2], **others}

    def rows(self) -> Iterator[Row]:
        """With the values that they have, and no others."""
        for _, row in self._sized():
            yield row

    def write_csv(self, file: IO[bytes]) -> None:
        """UTF-8 with a header, as RFC 4180 has it; nothing is an empty field."""
        columns = self.columns
        text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
        try:
            writer = csv.writer(text)
            writer.writerow(columns)
            for row in self.rows():
                cells = (_cell(row.get(name), kind) for name, kind in columns.items())
                writer.writerow(map(_csv, cells))
        finally:
            text.detach()

    def write_parquet(self, file: IO[bytes]) -> None:
        """Raises NoParquet."""
        pyarrow, parquet = parquet_library()
        types = {
            "text": pyarrow.string(),
            "number": pyarrow.float64(),
            "integer": pyarrow.int64(),
            "boolean": pyarrow.bool_(),
        }
        columns = self.columns
        schema = pyarrow.schema([(name, types[kind]) for name, kind in columns.items()])
        with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
            for rows in self._groups():
                cells = {
                    name: [_cell(row.get(name), kind) for row in rows]
                    for name, kind in columns.items()
                }
                writer.write_table(pyarrow.table(cells, schema=schema))

    def _fitted(self, row: Row, free: Row) -> Row:
        """The row with all that has a column, or gets one; the rest under `others`."""
        others = {}
        for name, value in free.items():
            if name not in self._found and len(self._found) >= MOST_COLUMNS:
                others[name] = value
                continue
            self._found[name] = _together(self._found.get(name), value)
            row[name] = value
        if others:
            self._has_others = True
            row[OTHERS] = others
        return row

    def _groups(self) -> Iterator[list[Row]]:
        group: list[Row] = []
        size = 0
        for length, row in self._sized():
            if group and (len(group) == AT_ONCE or size + length > MOST_BYTES):
                yield group
                group, size = [], 0
            group.append(row)
            size += length
        if group:
            yield group

    def _sized(self) -> Iterator[tuple[int, Row]]:
        self._spool.seek(0)
        for line in self._spool:
            yield len(line), json.loads(line)


def parquet_library() -> tuple[Any, Any]:
    """Imported late: it takes its time, and may not be there. Raises NoParquet."""
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise NoParquet(
            "Parquet needs pyarrow: pip install 'perdure[parquet]', or write CSV."
        ) from error


def _row(result: SampleResult, attempt: Attempt, is_final: bool) -> Row:
    """The columns that every table has; what is nothing is left out."""
    failure, usage, grading = attempt.failure, attempt.usage, attempt.grading
    target = result.target
    row = {
        "sample": result.id,
        "epoch": attempt.epoch,
        "attempt": attempt.number,
        "is_final": is_final,
        "status": attempt.status,
        "limit": attempt.limit,
        "failure_kind": failure and failure.kind,
        "failure_code": failure and failure.code,
        "failure_detail": failure and failure.detail,
        "answer": attempt.answer,
        "target": target[0] if len(target) == 1 else list(target) or None,
        "cost": usage.cost,
        "tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "grading_cost": grading.cost,
        "grading_tokens": grading.prompt_tokens + grading.completion_tokens,
        **attempt.model_dump(
            include={"seconds", "turns", "tool_calls", "tool_errors", "stuck", "conversation_id"}
        ),
    }
    return {name: value for name, value in row.items() if value is not None}


def _free(result: SampleResult, attempt: Attempt) -> Row:
    """The columns that this batch has."""
    found: Row = {}
    for scorer, score in attempt.scores.items():
        metrics = score.value if isinstance(score.value, dict) else {"": score.value}
        called = {metric: f"{scorer}/{metric}" if metric else scorer for metric in metrics}
        found |= {f"score.{called[metric]}": one for metric, one in score.numbers.items()}
        words = {metric: one for metric, one in metrics.items() if isinstance(one, str)}
        found |= {f"label.{called[metric]}": word for metric, word in words.items()}
    return found | {f"metadata.{key}": value for key, value in result.metadata.items()}


def _together(kind: Kind | None, value: Any) -> Kind | None:
    """What takes all values so far and this one; None as long as there was none."""
    if value is None:
        return kind
    own = _kind(value)
    if kind is None or kind == own:
        return own
    return "number" if {kind, own} == {"integer", "number"} else "text"


def _kind(value: Any) -> Kind:
    match value:
        case bool():
            return "boolean"
        case int() if value in INT64:
            return "integer"
        case float():
            return "number"
        case _:
            return "text"


def _cell(value: Any, kind: Kind) -> Any:
    """The value as its column takes it."""
    if value is None:
        return None
    if kind == "text" and not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return float(value) if kind == "number" else value


def _csv(value: Any) -> Any:
    return ("false", "true")[value] if isinstance(value, bool) else value
