"""The manifest of a shared log: which events each pruning took out of sight."""

from collections.abc import Iterable, Iterator

from perdure.agent.discussion.pruning import PrunePolicy
from perdure.events.base import Tolerant
from perdure.events.discussion import MillisecondTimestamp


class Pruning(Tolerant):
    """A pruning: its policy, and the ranges of sequences, ends included, that it took out."""

    number: int
    policy: PrunePolicy
    through: int
    """The newest event that the policy looked at."""
    timestamp: MillisecondTimestamp
    ranges: tuple[tuple[int, int], ...]

    def sequences(self) -> Iterator[int]:
        for first, last in self.ranges:
            yield from range(first, last + 1)


def to_ranges(sequences: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return the ranges, ends included, of sequences in order."""
    ranges: list[tuple[int, int]] = []
    for sequence in sequences:
        if ranges and ranges[-1][1] == sequence - 1:
            ranges[-1] = (ranges[-1][0], sequence)
        else:
            ranges.append((sequence, sequence))
    return tuple(ranges)
