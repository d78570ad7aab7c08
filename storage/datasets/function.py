"""Rows from Python: a list, an iterator, or a function that gives one."""

from collections.abc import Iterable, Mapping
from typing import Any

from evaluation.sample import Sample
from storage.datasets.references import found
from storage.datasets.rows import BadDataset, Row, Rows, bad_row


def rows(reference: str) -> Rows:
    """A row is a Sample, or an object of fields; its place is its number. Raises BadDataset."""
    number = 0
    try:
        for number, row in enumerate(_items(reference), 1):
            yield Row(number, _fields(reference, number, row))
    except BadDataset:
        raise
    except Exception as error:
        # Another's code may raise anything; whatever it is, its author is told in one sentence.
        why = f"it raised {type(error).__name__}: {error}"
        raise bad_row(reference, number + 1, why) from error


def _items(reference: str) -> Iterable[Any]:
    value = found(reference)
    items = value() if callable(value) else value
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise BadDataset(
            f"{reference} gives a {type(items).__name__}: it must give samples, as a list or one "
            "after the other."
        )
    return items


def _fields(reference: str, number: int, row: Any) -> Mapping[str, Any]:
    if isinstance(row, Sample):
        return dict(row)
    if isinstance(row, Mapping):
        return row
    raise bad_row(reference, number, f"a {type(row).__name__} is no Sample and no object of fields")
