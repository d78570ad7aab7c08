"""The distribution of a stream of numbers, in memory that does not grow with their count."""

from collections import Counter
from math import log10
from typing import NamedTuple

from perdure.evaluation.statistics import Moments

STEPS_PER_UNIT = 1_000_000
"""Numbers that lie closer together count as equal."""

MAX_STEPS = 5000
"""Different steps in memory; beyond these, each step becomes ten times as wide."""

BARS = 24
"""The approximate number of bins of a histogram."""

NEARLY_ALL = 0.99

OUTLIER_FACTOR = 2.0
"""With a largest number beyond this many times the 99 % quantile, one bar holds all outliers."""


class Bin(NamedTuple):
    """The count of numbers in [`low`, `high`)."""

    low: float
    high: float
    frequency: int


class Histogram(NamedTuple):
    """`beyond` counts the numbers from the end of the last bin on."""

    bins: tuple[Bin, ...]
    beyond: int


class Distribution:
    """A running histogram of numbers >= 0; `whole` promises that all are whole."""

    def __init__(self, whole: bool = False) -> None:
        self.moments = Moments()
        self.highest = 0.0
        self.whole = whole
        self._step = 1
        self._counts: Counter[int] = Counter()

    def add(self, value: float) -> None:
        self.moments.add(value)
        self.highest = max(self.highest, value)
        self._counts[round(value * STEPS_PER_UNIT) // self._step] += 1
        while len(self._counts) > MAX_STEPS:
            coarser: Counter[int] = Counter()
            for at, count in self._counts.items():
                coarser[at // 10] += count
            self._counts, self._step = coarser, self._step * 10

    @property
    def count(self) -> int:
        return self.moments.count

    def quantile(self, share: float) -> float:
        """The number that this share of all numbers does not exceed."""
        return self._quantile(share) / STEPS_PER_UNIT

    def histogram(self) -> Histogram:
        if not self.count:
            return Histogram((), 0)
        first, last = min(self._counts), max(self._counts)
        low, high = first * self._step, last * self._step
        near_end = self._quantile(NEARLY_ALL)
        end = near_end if high > OUTLIER_FACTOR * near_end > 0 else high
        start = 0 if low < (end + low) / 4 else low
        width = max(self._step, STEPS_PER_UNIT * self.whole, _round_up((end - start) / BARS))
        start -= start % width
        counts: Counter[int] = Counter()
        for at, count in self._counts.items():
            counts[(at * self._step - start) // width] += count
        bars = (end - start) // width + 1
        bins = (
            Bin(
                (start + at * width) / STEPS_PER_UNIT,
                (start + (at + 1) * width) / STEPS_PER_UNIT,
                counts[at],
            )
            for at in range(bars)
        )
        return Histogram(tuple(bins), sum(count for at, count in counts.items() if at >= bars))

    def _quantile(self, share: float) -> int:
        """Interpolate linearly within the step that holds the quantile."""
        wanted, passed = share * self.count, 0
        for at in sorted(self._counts):
            count = self._counts[at]
            if passed + count >= wanted:
                return at * self._step + int((self._step - 1) * (wanted - passed) / count)
            passed += count
        return 0


def _round_up(width: float) -> int:
    """Round up to 1, 2 or 5 times a power of ten."""
    if width <= 1:
        return 1
    ten = int(10 ** int(log10(width)))
    return next(step * ten for step in (1, 2, 5, 10, 100) if step * ten >= width)
