"""Ranges of slots: the first and the last slot of each, sorted and disjoint."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

SeqRanges: TypeAlias = tuple[tuple[int, int], ...]


def merge_ranges(ranges: SeqRanges, other: Iterable[Iterable[int]]) -> SeqRanges:
    """Merge all slots of both into as few ranges as possible."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted((*ranges, *(tuple(pair) for pair in other))):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)


def remaining_ranges(forgotten: SeqRanges, end: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of slots before `end` that are not forgotten."""
    at = 0
    for first, last in forgotten:
        if at < min(first, end):
            yield at, min(first, end) - 1
        at = last + 1
    if at < end:
        yield at, end - 1
