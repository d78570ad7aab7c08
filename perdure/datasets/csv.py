"""Rows from comma-separated values with a header, as in RFC 4180."""

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from perdure.datasets.rows import MAX_ROW_BYTES, Row, Rows, bad_row


def read_rows(path: Path) -> Rows:
    """Yield the rows; each cell is text, an empty one None. Raises BadDataset and OSError."""
    csv.field_size_limit(
        MAX_ROW_BYTES
    )  # process-wide; the default of 128 KiB is too small for a prompt
    with path.open("rb") as file:
        reader = csv.reader(_lines(path, file), strict=True)
        header: list[str] = []
        line = 1
        try:
            for cells in reader:
                if not header:
                    header = _header(path, line, cells)
                elif cells:
                    yield Row(line, _row(path, line, header, cells))
                line = reader.line_num + 1
        except csv.Error as error:
            raise bad_row(str(path), line, f"it is no CSV: {error}") from error


def _lines(path: Path, file: IO[bytes]) -> Iterator[str]:
    for number, line in enumerate(file, 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise bad_row(str(path), number, f"it is no UTF-8 (byte {error.start + 1})") from error


def _header(path: Path, line: int, cells: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    if duplicates := [name for name, count in Counter(names).items() if count > 1]:
        raise bad_row(str(path), line, f"the header has {duplicates[0]!r} twice")
    return names


def _row(path: Path, line: int, header: list[str], cells: list[str]) -> dict[str, str | None]:
    if len(cells) != len(header):
        why = f"it has {len(cells)} cells, and the header has {len(header)}"
        raise bad_row(str(path), line, why)
    return {name: cell or None for name, cell in zip(header, cells, strict=True)}
