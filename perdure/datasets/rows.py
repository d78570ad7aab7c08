"""The rows of a dataset, read from JSON lines, CSV, Parquet or Python code."""

import base64
import csv
import importlib
import json
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from perdure.errors import MissingExtra, PerdureError
from perdure.evaluation.sample import Sample
from perdure.evaluation.spec import Format
from perdure.references import BadReference, import_reference

MAX_ROW_BYTES = 64 * 1024 * 1024
"""Bytes of a row: one is in memory at a time."""

ROWS_PER_BATCH = 64
"""Rows of Parquet that are in memory at a time."""


class BadDataset(PerdureError, ValueError):
    """A dataset that cannot be used; the text is a sentence, behind `FILE:LINE: ` if known."""


class Row(NamedTuple):
    """The fields of a row, and the line that it begins in, or else its number, from 1 on."""

    line: int
    fields: Mapping[str, Any]


Rows: TypeAlias = Iterator[Row]


def bad_row(source: object, line: int, why: object) -> BadDataset:
    return BadDataset(f"{source}:{line}: {str(why).rstrip('.')}.")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_ROW_BYTES + 1), b""), 1):
            if len(line) > MAX_ROW_BYTES:
                raise bad_row(path, number, f"it has over {MAX_ROW_BYTES:,} bytes")
            try:
                yield number, (line if number > 1 else line.removeprefix(BOM_UTF8)).decode()
            except UnicodeDecodeError as error:
                raise bad_row(path, number, f"it is no UTF-8 (byte {error.start + 1})") from error


def read_jsonl(path: Path) -> Rows:
    """Yield the object in each line that is not empty. Raises BadDataset and OSError."""
    for number, line in _lines(path):
        if line.strip():
            yield Row(number, _object(path, number, line))


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        value = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise bad_row(path, number, f"it is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise bad_row(path, number, 'it is no JSON object: write one such as {"input": …}')
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def read_csv(path: Path) -> Rows:
    """Yield rows under a header (RFC 4180); an empty cell is None. Raises BadDataset, OSError."""
    # For the whole process; the default of 128 KiB is too small for a prompt.
    csv.field_size_limit(MAX_ROW_BYTES)
    reader = csv.reader((line for _, line in _lines(path)), strict=True)
    header: list[str] = []
    line = 1
    try:
        for cells in reader:
            if not header:
                header = [cell.strip() for cell in cells]
                if twice := [name for name, count in Counter(header).items() if count > 1]:
                    raise bad_row(path, line, f"the header has {twice[0]!r} twice")
            elif len(cells) not in (0, len(header)):
                why = f"it has {len(cells)} cells, and the header has {len(header)}"
                raise bad_row(path, line, why)
            elif cells:
                named = zip(header, cells, strict=True)
                yield Row(line, {name: cell or None for name, cell in named})
            line = reader.line_num + 1
    except csv.Error as error:
        raise bad_row(path, line, f"it is no CSV: {error}") from error


def read_parquet(path: Path) -> Rows:
    """Yield the rows by number. Raises BadDataset, MissingExtra and OSError."""
    pyarrow, parquet = import_pyarrow()
    try:
        with path.open("rb") as opened, parquet.ParquetFile(opened) as file:
            batches = file.iter_batches(batch_size=ROWS_PER_BATCH)
            rows = (fields for batch in batches for fields in batch.to_pylist())
            yield from (Row(number, _to_json_value(row)) for number, row in enumerate(rows, 1))
    except pyarrow.ArrowException as error:
        raise BadDataset(f"{path} cannot be read as Parquet: {error}") from error


def import_pyarrow() -> tuple[Any, Any]:
    """Import pyarrow late: it is slow, and may not be installed. Raises MissingExtra."""
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtra("Parquet", "parquet", "JSONL and CSV need no extra.") from error


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


READERS: dict[Format, Callable[[Path], Rows]] = {
    "jsonl": read_jsonl,
    "csv": read_csv,
    "parquet": read_parquet,
}


def read_python(reference: str, arguments: Mapping[str, Any] | None = None) -> Rows:
    """Yield rows (Samples or objects) of a list, an iterator or a function. Raises BadDataset."""
    number = 0
    try:
        for number, row in enumerate(_items(reference, arguments or {}), 1):
            if not isinstance(row, Sample | Mapping):
                why = f"a {type(row).__name__} is no Sample and no object of fields"
                raise bad_row(reference, number, why)
            yield Row(number, dict(row) if isinstance(row, Sample) else row)
    except BadDataset:
        raise
    except Exception as error:
        # A dataset's code may raise anything: its author gets one sentence.
        why = f"it raised {type(error).__name__}: {error}"
        raise bad_row(reference, number + 1, why) from error


def _items(reference: str, arguments: Mapping[str, Any]) -> Iterable[Any]:
    try:
        value = import_reference(reference)
    except BadReference as error:
        raise BadDataset(f"{reference!r}: {error}.") from error
    if arguments and not callable(value):
        raise BadDataset(f"{reference!r} is no function, and takes no arguments.")
    items = value(**arguments) if callable(value) else value
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise BadDataset(
            f"{reference} gives a {type(items).__name__}: it must give samples, as a list or one "
            "after the other."
        )
    return items
