"""Rows, as every reader of a dataset yields them."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from perdure.errors import PerdureError
from perdure.evaluation.sample import InvalidSample
from perdure.evaluation.spec import FieldMap

MAX_ROW_BYTES = 64 * 1024 * 1024
"""Bytes of a row: one is in memory at a time."""


class BadDataset(PerdureError, ValueError):
    """A dataset that cannot be used; the text is a sentence, behind `FILE:LINE: ` if known."""


class Row(NamedTuple):
    """The fields of a row, and the line that it begins in, or else its number, from 1 on."""

    line: int
    fields: Mapping[str, Any]


Rows: TypeAlias = Iterator[Row]


def bad_row(source: str, line: int, why: object) -> BadDataset:
    return BadDataset(f"{source}:{line}: {why}")


PLAIN_FIELDS = ("id", "input", "target", "setup")

JSON_FIELDS = ("files", "metadata", "turns")
"""Fields that hold objects or lists, also as JSON text, for a CSV has only text."""


def map_fields(row: Mapping[str, Any], fields: FieldMap) -> dict[str, Any]:
    """Return the fields of a sample. Raises InvalidSample if a column is missing."""
    values: dict[str, Any] = {}
    for field in (*PLAIN_FIELDS, *JSON_FIELDS):
        column = getattr(fields, field)
        if isinstance(column, tuple):
            values[field] = {part: _cell(row, field, part) for part in column}
        elif column in row:
            values[field] = row[column]
        elif field in fields.model_fields_set or field == "input":
            _cell(row, field, column)
    parsed = {field: _parse_json(field, values[field]) for field in JSON_FIELDS if field in values}
    return values | {name: value for name, value in parsed.items() if value is not None}


def _cell(row: Mapping[str, Any], field: str, column: str) -> Any:
    if column not in row:
        columns = ", ".join(map(repr, row)) or "none"
        raise InvalidSample(f"there is no column {column!r} for {field}; the row has {columns}")
    return row[column]


def _parse_json(field: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise InvalidSample(f"{field} is no JSON: {error}") from error
