"""What every reader of a dataset gives: rows, each with its place."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

LONGEST = 64 * 1024 * 1024
"""Bytes of a row: one is held at a time."""


class BadDataset(ValueError):
    """A dataset that cannot be used; the text is a sentence, behind the place where there is one.

    `FILE:LINE: …`
    """


class Row(NamedTuple):
    """`line` is the line that a row begins in, or else its number; both count from 1."""

    line: int
    fields: Mapping[str, Any]


Rows: TypeAlias = Iterator[Row]


def bad_row(source: str, line: int, why: object) -> BadDataset:
    return BadDataset(f"{source}:{line}: {why}")
