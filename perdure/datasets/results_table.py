"""The attempts of a batch as a table, a row each, as CSV or Parquet.

`score.NAME` has numbers, `label.NAME` words; NAME is the scorer, or `scorer/metric` if it has
several. `metadata.KEY` has the type that all its values have, and else text: a string as it is,
anything else as JSON. A target of several alternatives is a JSON list. Values are written as they
are: a spreadsheet takes a text that begins with `=` for a formula.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, Literal, TypeAlias

from perdure.datasets.rows import import_pyarrow
from perdure.evaluation.ledger import spent_amount
from perdure.evaluation.result import AttemptResult, SampleResult
from perdure.exports.json_text import compact_json

ColumnType: TypeAlias = Literal["text", "number", "integer", "boolean"]
TableRow: TypeAlias = dict[str, Any]

Column: TypeAlias = tuple[ColumnType, Callable[[SampleResult, AttemptResult], Any]]
"""The type of a column, and the value of an attempt in it."""

LEADING_COLUMNS: dict[str, Column] = {
    "sample": ("text", lambda result, _: result.id),
    "epoch": ("integer", lambda _, attempt: attempt.epoch),
    "attempt": ("integer", lambda _, attempt: attempt.number),
    "is_final": ("boolean", lambda result, attempt: attempt in result.final_attempts),
    "status": ("text", lambda _, attempt: attempt.status),
    "limit": ("text", lambda _, attempt: attempt.limit),
    "failure_kind": ("text", lambda _, attempt: attempt.failure and attempt.failure.kind),
    "failure_code": ("text", lambda _, attempt: attempt.failure and attempt.failure.code),
    "failure_detail": ("text", lambda _, attempt: attempt.failure and attempt.failure.detail),
}

TRAILING_COLUMNS: dict[str, Column] = {
    "answer": ("text", lambda _, attempt: attempt.answer),
    "target": ("text", lambda result, _: _one_or_list(result.target)),
    "cost": ("number", lambda _, attempt: attempt.usage.cost),
    "tokens": ("integer", lambda _, attempt: spent_amount(attempt.usage).tokens),
    "prompt_tokens": ("integer", lambda _, attempt: attempt.usage.prompt_tokens),
    "completion_tokens": ("integer", lambda _, attempt: attempt.usage.completion_tokens),
    "grading_cost": ("number", lambda _, attempt: attempt.grading.cost),
    "grading_tokens": ("integer", lambda _, attempt: spent_amount(attempt.grading).tokens),
    "seconds": ("number", lambda _, attempt: attempt.seconds),
    "turns": ("integer", lambda _, attempt: attempt.turns),
    "tool_calls": ("integer", lambda _, attempt: attempt.tool_calls),
    "tool_errors": ("integer", lambda _, attempt: attempt.tool_errors),
    "stuck": ("boolean", lambda _, attempt: attempt.stuck),
    "conversation_id": ("text", lambda _, attempt: attempt.conversation_id),
}

FIXED_COLUMNS = LEADING_COLUMNS | TRAILING_COLUMNS

PARQUET_TYPES = {"text": "string", "number": "float64", "integer": "int64", "boolean": "bool_"}

MAX_FREE_COLUMNS = 1000
"""Columns of scores, labels and metadata; values without one go into `others`, as JSON."""

OTHERS_COLUMN = "others"

MAX_GROUP_ROWS = 1000
"""Rows of a group of rows in Parquet."""

MAX_GROUP_BYTES = 16 * 1024 * 1024
"""Bytes of such a group, unless a single row is larger."""

INT64 = range(-(2**63), 2**63)


class ResultsTable:
    """Rows that wait in `spool`, a file of our own, until all columns are known."""

    def __init__(self, spool: IO[bytes]) -> None:
        self._spool = spool
        self._free_columns: dict[str, ColumnType | None] = {}
        self._has_others = False

    def add(self, result: SampleResult, attempts: Iterable[AttemptResult]) -> None:
        for attempt in attempts:
            values = {name: value(result, attempt) for name, (_, value) in FIXED_COLUMNS.items()}
            row = {name: value for name, value in values.items() if value is not None}
            row = self._fit_columns(row, _free_values(result, attempt))
            self._spool.write(compact_json(row) + b"\n")

    @property
    def columns(self) -> dict[str, ColumnType]:
        free = {name: kind or "text" for name, kind in sorted(self._free_columns.items())}
        scores, labels, metadata = (
            {name: kind for name, kind in free.items() if name.startswith(group)}
            for group in ("score.", "label.", "metadata.")
        )
        others: dict[str, ColumnType] = {OTHERS_COLUMN: "text"} if self._has_others else {}
        leading, trailing = (
            {name: kind for name, (kind, _) in columns.items()}
            for columns in (LEADING_COLUMNS, TRAILING_COLUMNS)
        )
        return {**leading, **scores, **labels, **trailing, **metadata, **others}

    def rows(self) -> Iterator[TableRow]:
        """Yield the rows, each with the values that it has."""
        return map(json.loads, self._lines())

    def _lines(self) -> Iterator[bytes]:
        self._spool.seek(0)
        return iter(self._spool)

    def write_csv(self, file: IO[bytes]) -> None:
        """Write UTF-8 with a header, as in RFC 4180; None is an empty field."""
        columns = self.columns
        text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
        try:
            writer = csv.writer(text)
            writer.writerow(columns)
            for row in self.rows():
                writer.writerow(map(_csv_cell, _cells(row, columns).values()))
        finally:
            text.detach()

    def write_parquet(self, file: IO[bytes]) -> None:
        """Write Parquet. Raises MissingExtra."""
        pyarrow, parquet = import_pyarrow()
        columns = self.columns
        types = {name: getattr(pyarrow, PARQUET_TYPES[kind])() for name, kind in columns.items()}
        schema = pyarrow.schema(list(types.items()))
        with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
            for rows in self._groups():
                cells = [_cells(row, columns) for row in rows]
                writer.write_table(pyarrow.Table.from_pylist(cells, schema=schema))

    def _fit_columns(self, row: TableRow, free: TableRow) -> TableRow:
        """Give each value its column; put those beyond the limit under `others`."""
        others = {}
        for name, value in free.items():
            if name not in self._free_columns and len(self._free_columns) >= MAX_FREE_COLUMNS:
                others[name] = value
                continue
            self._free_columns[name] = _merge_types(self._free_columns.get(name), value)
            row[name] = value
        if others:
            self._has_others = True
            row[OTHERS_COLUMN] = others
        return row

    def _groups(self) -> Iterator[list[TableRow]]:
        group: list[TableRow] = []
        size = 0
        for line in self._lines():
            if group and (len(group) == MAX_GROUP_ROWS or size + len(line) > MAX_GROUP_BYTES):
                yield group
                group, size = [], 0
            group.append(json.loads(line))
            size += len(line)
        if group:
            yield group


def _one_or_list(target: tuple[str, ...]) -> str | list[str] | None:
    return target[0] if len(target) == 1 else list(target) or None


def _free_values(result: SampleResult, attempt: AttemptResult) -> TableRow:
    """Return the values of the columns that only this batch has."""
    values: TableRow = {}
    for scorer, score in attempt.scores.items():
        names = {metric: f"{scorer}/{metric}" if metric else scorer for metric in score.metrics}
        values |= {f"score.{names[metric]}": value for metric, value in score.numbers.items()}
        words = {metric: value for metric, value in score.metrics.items() if isinstance(value, str)}
        values |= {f"label.{names[metric]}": word for metric, word in words.items()}
    return values | {f"metadata.{key}": value for key, value in result.metadata.items()}


def _merge_types(kind: ColumnType | None, value: Any) -> ColumnType | None:
    """Return a type for all values so far and this one; None before the first value."""
    if value is None:
        return kind
    value_type = _type_of(value)
    if kind is None or kind == value_type:
        return value_type
    return "number" if {kind, value_type} == {"integer", "number"} else "text"


def _type_of(value: Any) -> ColumnType:
    match value:
        case bool():
            return "boolean"
        case int() if value in INT64:
            return "integer"
        case float():
            return "number"
        case _:
            return "text"


def _cells(row: TableRow, columns: dict[str, ColumnType]) -> TableRow:
    return {name: _cell(row.get(name), kind) for name, kind in columns.items()}


def _cell(value: Any, kind: ColumnType) -> Any:
    if value is None:
        return None
    if kind == "text" and not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return float(value) if kind == "number" else value


def _csv_cell(value: Any) -> Any:
    return ("false", "true")[value] if isinstance(value, bool) else value
