"""What a mean of scores says of the scores that were not taken.

The unit is the sample: epochs of one sample are no independent evidence, so they are reduced to one
value first. An error of these values is the error clustered by sample (Miller 2024, "Adding error
bars to evals", eq. 4), with the factor G / (G - 1) for few clusters.
"""

from array import array
from collections.abc import Sequence
from math import erfc, fsum, sqrt
from typing import NamedTuple

from evaluation.dice import numbers

Z = 1.959963984540054
"""The 97.5th percentile of the normal distribution."""

RESAMPLES = 1000

MOST_RESAMPLED = 2000
"""Values that are resampled; of more of them a mean is normal, and the bootstrap only slower."""


class Interval(NamedTuple):
    """Where the true value lies, at a confidence of 95 %."""

    low: float
    high: float


class Moments:
    """Mean and variance of values that come one by one (Welford 1962; Knuth, TAOCP 4.2.2)."""

    def __init__(self) -> None:
        self.count = 0
        self.mean = 0.0
        self._squares = 0.0

    def add(self, value: float) -> None:
        self.count += 1
        before = value - self.mean
        self.mean += before / self.count
        self._squares += before * (value - self.mean)

    @property
    def standard_error(self) -> float | None:
        """s / sqrt(n), with Bessel's correction; a single value has none."""
        if self.count < 2:
            return None
        return sqrt(self._squares / (self.count - 1) / self.count)


def moments(values: Sequence[float]) -> Moments:
    found = Moments()
    for value in values:
        found.add(value)
    return found


def normal(mean: float, standard_error: float) -> Interval:
    """Mean and 1.96 standard errors to either side (the central limit theorem)."""
    return Interval(mean - Z * standard_error, mean + Z * standard_error)


def wilson(right: int, count: int) -> Interval:
    """Of a proportion; it holds for few values and near 0 and 1 (Wilson 1927; Brown et al. 2001).

    `count` is at least 1.
    """
    share, z2 = right / count, Z * Z
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = Z * sqrt(share * (1 - share) / count + z2 / (4 * count * count)) / (1 + z2 / count)
    # At 0 and 1 an end is the share itself, but for rounding.
    return Interval(max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half)))


def bootstrap(values: Sequence[float], seed: str) -> Interval:
    """The percentile interval of the mean (Efron & Tibshirani 1993, 13.3), one value a sample.

    The same seed gives the same interval. There is at least one value.
    """
    means = sorted(_resampled(values, f"{seed}:{one}") for one in range(RESAMPLES))
    return Interval(_quantile(means, 0.025), _quantile(means, 0.975))


def _resampled(values: Sequence[float], seed: str) -> float:
    count = len(values)
    return fsum([values[one * count >> 64] for one in numbers(seed, count)]) / count


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Between two values in proportion (Hyndman & Fan 1996, type 7)."""
    at = share * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])


def two_sided(z: float) -> float:
    """The chance of a normal value that is at least as far from 0."""
    return erfc(abs(z) / sqrt(2))


class Estimator:
    """A mean with its errors, from values that come one by one; memory is bounded."""

    def __init__(self) -> None:
        self.moments = Moments()
        self.binary = True
        self._values = array("d")

    def add(self, value: float) -> None:
        self.moments.add(value)
        self.binary = self.binary and value in (0.0, 1.0)
        if self.moments.count <= MOST_RESAMPLED:
            self._values.append(value)

    def interval(self, seed: str) -> Interval | None:
        """By the bootstrap up to MOST_RESAMPLED values; a single value has none."""
        error = self.moments.standard_error
        if error is None:
            return None
        if self.moments.count > MOST_RESAMPLED:
            return normal(self.moments.mean, error)
        return bootstrap(self._values, seed)

    def wilson(self) -> Interval | None:
        """Where every value is 0 or 1."""
        if not self.binary or not self.moments.count:
            return None
        return wilson(round(self.moments.mean * self.moments.count), self.moments.count)
