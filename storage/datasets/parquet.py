"""Apache Parquet; pyarrow is an extra, as few need it and it is large."""

import base64
import importlib
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from storage.datasets.rows import BadDataset, Row, Rows

AT_ONCE = 64
"""Rows that are held at a time."""


def rows(path: Path) -> Rows:
    """A row's place is its number. Raises BadDataset and OSError."""
    pyarrow, parquet = _library(path)
    number = 0
    try:
        with path.open("rb") as opened, parquet.ParquetFile(opened) as file:
            for batch in file.iter_batches(batch_size=AT_ONCE):
                for fields in batch.to_pylist():
                    number += 1
                    yield Row(number, {name: _plain(value) for name, value in fields.items()})
    except pyarrow.ArrowException as error:
        raise BadDataset(f"{path} cannot be read as Parquet: {error}") from error


def _library(path: Path) -> tuple[Any, Any]:
    """Imported late: it takes its time, and may not be there."""
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise BadDataset(
            f"{path} is Parquet, which needs pyarrow: pip install 'perdure[parquet]', or write the "
            "dataset as JSONL."
        ) from error


def _plain(value: Any) -> Any:
    """The value as JSON could hold it; bytes as a file of a sample is written."""
    match value:
        case dict():
            return {name: _plain(one) for name, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
        case bytes():
            return {"base64": base64.b64encode(value).decode()}
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta() | Decimal():
            return str(value)
        case _:
            return value
