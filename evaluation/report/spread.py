"""How numbers are spread that come one by one, in memory that does not grow with them."""

from collections import Counter
from math import log10
from typing import NamedTuple

from evaluation.statistics import Moments

FINEST = 1_000_000
"""Steps in 1: what lies closer together is the same number."""

MOST = 5000
"""Different steps that are kept; with more of them, each becomes ten times as wide."""

BARS = 24
"""About so many of them show how numbers are spread."""

NEARLY_ALL = 0.99

FAR = 2.0
"""Where the largest number is so many times what nearly all stay under, the rest is one bar."""


class Bin(NamedTuple):
    """So many numbers are at least `low` and less than `high`."""

    low: float
    high: float
    many: int


class Histogram(NamedTuple):
    """`beyond` are the numbers from the end of the last bin on."""

    bins: tuple[Bin, ...]
    beyond: int


class Spread:
    """`whole` says that all are whole numbers."""

    def __init__(self, whole: bool = False) -> None:
        self.moments = Moments()
        self.highest = 0.0
        self.whole = whole
        self._step = 1
        self._counts: Counter[int] = Counter()

    def add(self, value: float) -> None:
        """A number of 0 or more."""
        self.moments.add(value)
        self.highest = max(self.highest, value)
        self._counts[round(value * FINEST) // self._step] += 1
        while len(self._counts) > MOST:
            coarser: Counter[int] = Counter()
            for at, count in self._counts.items():
                coarser[at // 10] += count
            self._counts, self._step = coarser, self._step * 10

    @property
    def count(self) -> int:
        return self.moments.count

    def quantile(self, share: float) -> float:
        """The number that this share of them does not pass."""
        return self._quantile(share) / FINEST

    def histogram(self) -> Histogram:
        if not self.count:
            return Histogram((), 0)
        first, last = min(self._counts), max(self._counts)
        low, high = first * self._step, last * self._step
        most = self._quantile(NEARLY_ALL)
        end = most if high > FAR * most > 0 else high
        start = 0 if low < (end + low) / 4 else low
        width = max(self._step, FINEST * self.whole, _round_up((end - start) / BARS))
        start -= start % width
        found: Counter[int] = Counter()
        for at, many in self._counts.items():
            found[(at * self._step - start) // width] += many
        bars = (end - start) // width + 1
        bins = (
            Bin((start + at * width) / FINEST, (start + (at + 1) * width) / FINEST, found[at])
            for at in range(bars)
        )
        return Histogram(tuple(bins), sum(many for at, many in found.items() if at >= bars))

    def _quantile(self, share: float) -> int:
        """Where a step is wide, in proportion within it."""
        wanted, passed = share * self.count, 0
        for at in sorted(self._counts):
            many = self._counts[at]
            if passed + many >= wanted:
                return at * self._step + int((self._step - 1) * (wanted - passed) / many)
            passed += many
        return 0


def _round_up(width: float) -> int:
    """The next 1, 2 or 5 with zeros behind it."""
    if width <= 1:
        return 1
    ten = int(10 ** int(log10(width)))
    return next(one * ten for one in (1, 2, 5, 10, 100) if one * ten >= width)
