"""Which column is what."""

import json
from collections.abc import Mapping
from typing import Any

from evaluation.sample import Misfit
from evaluation.spec import FieldMap

PLAIN = ("id", "input", "target", "setup")

TABLES = ("files", "metadata", "turns")
"""Fields that hold objects or lists, also as JSON text: a cell of a CSV can do no other."""


def mapped(row: Mapping[str, Any], fields: FieldMap) -> dict[str, Any]:
    """The fields of a sample. Raises Misfit where a column is missing."""
    given: dict[str, Any] = {}
    for field in (*PLAIN, *TABLES):
        column = getattr(fields, field)
        if isinstance(column, tuple):
            given[field] = {one: _column(row, field, one) for one in column}
        elif column in row:
            given[field] = row[column]
        elif field in fields.model_fields_set or field == "input":
            _column(row, field, column)
    tables = {field: _table(field, given[field]) for field in TABLES if field in given}
    return given | {name: value for name, value in tables.items() if value is not None}


def _column(row: Mapping[str, Any], field: str, column: str) -> Any:
    if column not in row:
        have = ", ".join(map(repr, row)) or "none"
        raise Misfit(f"there is no column {column!r} for {field}; the row has {have}")
    return row[column]


def _table(field: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise Misfit(f"{field} is no JSON: {error}") from error
