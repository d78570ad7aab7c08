"""Rows from Apache Parquet; pyarrow is an extra, as few need it and it is large."""

import base64
import importlib
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from perdure.datasets.rows import BadDataset, Row, Rows
from perdure.errors import MissingExtra

ROWS_PER_BATCH = 64
"""Rows that are in memory at a time."""


def read_rows(path: Path) -> Rows:
    """Yield the rows by number. Raises BadDataset and OSError."""
    pyarrow, parquet = import_pyarrow()
    number = 0
    try:
        with path.open("rb") as opened, parquet.ParquetFile(opened) as file:
            for batch in file.iter_batches(batch_size=ROWS_PER_BATCH):
                for fields in batch.to_pylist():
                    number += 1
                    yield Row(
                        number, {name: _to_json_value(value) for name, value in fields.items()}
                    )
    except pyarrow.ArrowException as error:
        raise BadDataset(f"{path} cannot be read as Parquet: {error}") from error


def import_pyarrow() -> tuple[Any, Any]:
    """Import pyarrow late: it is slow, and may not be installed. Raises MissingExtra."""
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        hint = "JSONL and CSV need no extra."
        raise MissingExtra("Parquet", "parquet", hint) from error


def _to_json_value(value: Any) -> Any:
    """Convert a value to JSON's types; bytes become a sample's encoded file."""
    match value:
        case dict():
            return {name: _to_json_value(item) for name, item in value.items()}
        case list() | tuple():
            return [_to_json_value(item) for item in value]
        case bytes():
            return {"base64": base64.b64encode(value).decode()}
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta() | Decimal():
            return str(value)
        case _:
            return value
