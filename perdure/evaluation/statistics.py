"""Standard errors and confidence intervals of mean scores.

The unit is the sample: epochs of one sample are not independent, so they are reduced to one value
first. The standard error of these values is the one clustered by sample (Miller 2024, "Adding error
bars to evals", eq. 4), with the factor G / (G - 1) for few clusters.
"""

from array import array
from collections.abc import Iterable, Sequence
from functools import cache
from math import atan, cos, erfc, pi, sin, sqrt
from statistics import fmean, quantiles
from typing import NamedTuple

from perdure.evaluation.seeded_random import integers

Z_95 = 1.959963984540054
"""The 97.5th percentile of the normal distribution."""

MAX_FREEDOM = 1000
"""The most degrees of freedom for which Student's t is not taken as normal."""

RESAMPLES = 1000

MAX_BOOTSTRAP_VALUES = 2000
"""The most values for a bootstrap; the mean of more is taken as normal."""


class Interval(NamedTuple):
    """A 95 % confidence interval."""

    low: float
    high: float


class Moments:
    """The running mean and variance of values (Welford 1962; Knuth, TAOCP 4.2.2)."""

    def __init__(self, values: Iterable[float] = ()) -> None:
        self.count = 0
        self.mean = 0.0
        self._squares = 0.0
        for value in values:
            self.add(value)

    def add(self, value: float) -> None:
        self.count += 1
        deviation = value - self.mean
        self.mean += deviation / self.count
        self._squares += deviation * (value - self.mean)

    @property
    def standard_error(self) -> float | None:
        """The standard error of the mean; None for a single value."""
        return error_of_mean(self.count, self._squares)


def error_of_mean(count: int, squared_deviations: float) -> float | None:
    """Compute the standard error s / sqrt(n) with Bessel's correction; None below two values."""
    if count < 2:
        return None
    return sqrt(squared_deviations / (count - 1) / count)


def normal_interval(mean: float, standard_error: float) -> Interval:
    """Compute the normal interval: the mean ± 1.96 standard errors (central limit theorem)."""
    return Interval(mean - Z_95 * standard_error, mean + Z_95 * standard_error)


def wilson_interval(right: int, count: int) -> Interval:
    """Compute Wilson's interval of a proportion (1927); `count` is at least 1.

    It holds for few values and near 0 and 1 (Brown et al. 2001).
    """
    share, z2 = right / count, Z_95 * Z_95
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = Z_95 * sqrt(share * (1 - share) / count + z2 / (4 * count * count)) / (1 + z2 / count)
    # At 0 and 1 one end equals the share up to rounding.
    return Interval(max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half)))


def bootstrap_interval(values: Sequence[float], seed: str) -> Interval:
    """Compute the percentile interval of the mean (Efron & Tibshirani 1993, 13.3).

    `values` has one value per sample, and at least one. The same seed gives the same interval.
    """
    means = [_resampled_mean(values, f"{seed}:{number}") for number in range(RESAMPLES)]
    low, *_, high = quantiles(means, n=40, method="inclusive")  # Hyndman & Fan 1996, type 7
    return Interval(low, high)


def _resampled_mean(values: Sequence[float], seed: str) -> float:
    count = len(values)
    return fmean([values[number * count >> 64] for number in integers(seed, count)])


def t_p_value(t: float, freedom: int) -> float:
    """Compute the probability of a value of Student's t at least as far from 0 as `t`.

    The sum is finite (Abramowitz & Stegun 26.7.3 and 26.7.4); with over MAX_FREEDOM degrees of
    freedom the distribution is taken as normal.
    """
    if freedom > MAX_FREEDOM:
        return erfc(abs(t) / sqrt(2))
    is_odd, angle = freedom % 2, atan(abs(t) / sqrt(freedom))
    cosine, total = cos(angle), 0.0
    term = cosine if is_odd else 1.0
    for k in range(1 + is_odd, freedom, 2):
        total += term
        term *= cosine * cosine * k / (k + 1)
    inside = sin(angle) * total
    return max(0.0, 1 - (2 / pi * (angle + inside) if is_odd else inside))


@cache
def t_quantile(freedom: int) -> float:
    """Compute the value of Student's t that is exceeded, on both sides together, in 5 %."""
    low, high = 1.0, 16.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if t_p_value(middle, freedom) >= 0.05 else (low, middle)
    return low


class Estimator(Moments):
    """A running mean with its intervals, in bounded memory."""

    def __init__(self) -> None:
        super().__init__()
        self.is_binary = True
        self._values = array("d")

    def add(self, value: float) -> None:
        super().add(value)
        self.is_binary = self.is_binary and value in (0.0, 1.0)
        if self.count <= MAX_BOOTSTRAP_VALUES:
            self._values.append(value)

    def interval(self, seed: str) -> Interval | None:
        """Compute the bootstrap interval, or the normal one if there are too many values for it.

        It is None for a single value.
        """
        error = self.standard_error
        if error is None:
            return None
        if self.count > MAX_BOOTSTRAP_VALUES:
            return normal_interval(self.mean, error)
        return bootstrap_interval(self._values, seed)

    def wilson_interval(self) -> Interval | None:
        """Compute Wilson's interval; None unless every value is 0 or 1."""
        if not self.is_binary or not self.count:
            return None
        return wilson_interval(round(self.mean * self.count), self.count)
