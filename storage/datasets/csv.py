"""Comma-separated values with a header, as in RFC 4180."""

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from storage.datasets.rows import LONGEST, Row, Rows, bad_row


def rows(path: Path) -> Rows:
    """Each cell is a text; an empty one is None. Raises BadDataset and OSError."""
    csv.field_size_limit(LONGEST)  # of the whole process: the default of 128 KiB is below a prompt
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
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise bad_row(str(path), line, f"the header has {twice[0]!r} twice")
    return names


def _row(path: Path, line: int, header: list[str], cells: list[str]) -> dict[str, str | None]:
    if len(cells) != len(header):
        why = f"it has {len(cells)} cells, and the header has {len(header)}"
        raise bad_row(str(path), line, why)
    return {name: cell or None for name, cell in zip(header, cells, strict=True)}
