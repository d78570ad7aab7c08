"""Slots of a log as ranges: the first and the last of each, in order and apart."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

Ranges: TypeAlias = tuple[tuple[int, int], ...]


def merged(one: Ranges, other: Iterable[Iterable[int]]) -> Ranges:
    """All slots of both, in as few ranges as there can be."""
    found: list[tuple[int, int]] = []
    for first, last in sorted((*one, *(tuple(each) for each in other))):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)


def between(forgotten: Ranges, end: int) -> Iterator[tuple[int, int]]:
    """The ranges that are left of the slots before `end`."""
    at = 0
    for first, last in forgotten:
        if at < min(first, end):
            yield at, min(first, end) - 1
        at = last + 1
    if at < end:
        yield at, end - 1
