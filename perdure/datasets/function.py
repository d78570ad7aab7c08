"""Rows from Python: a list, an iterator, or a function that returns one."""

from collections.abc import Iterable, Mapping
from typing import Any

from perdure.datasets.rows import BadDataset, Row, Rows, bad_row
from perdure.evaluation.sample import Sample
from perdure.references import BadReference, import_reference


def read_rows(reference: str) -> Rows:
    """Yield the rows, each a Sample or an object of fields, by number. Raises BadDataset."""
    number = 0
    try:
        for number, row in enumerate(_items(reference), 1):
            yield Row(number, _fields(reference, number, row))
    except BadDataset:
        raise
    except Exception as error:
        # A dataset's code may raise anything: its author gets one sentence.
        why = f"it raised {type(error).__name__}: {error}"
        raise bad_row(reference, number + 1, why) from error


def _items(reference: str) -> Iterable[Any]:
    try:
        value = import_reference(reference)
    except BadReference as error:
        raise BadDataset(f"{reference!r}: {error}.") from error
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
