"""Rows from JSON lines: an object in each line."""

import json
from codecs import BOM_UTF8
from pathlib import Path
from typing import Any

from perdure.datasets.rows import MAX_ROW_BYTES, Row, Rows, bad_row


def read_rows(path: Path) -> Rows:
    """Yield the rows, skipping empty lines. Raises BadDataset and OSError."""
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_ROW_BYTES + 1), b""), 1):
            if number == 1:
                line = line.removeprefix(BOM_UTF8)
            if len(line) > MAX_ROW_BYTES:
                raise bad_row(str(path), number, f"it has over {MAX_ROW_BYTES:,} bytes")
            if line.strip():
                yield Row(number, _object(path, number, line))


def _object(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line.decode(), parse_constant=_refuse)
    except UnicodeDecodeError as error:
        raise bad_row(str(path), number, f"it is no UTF-8 (byte {error.start + 1})") from error
    except (ValueError, RecursionError) as error:
        raise bad_row(str(path), number, f"it is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise bad_row(str(path), number, 'it is no JSON object: write one such as {"input": …}')
    return value


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")
