"""The statistics of the benches: medians with their spread, ratios, percentiles, tenths."""

import bisect
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

TENTHS = 10


@dataclass(frozen=True)
class Spread:
    """The median of some figures, with the least and the greatest of them."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


def measure_spread(figures: Sequence[float]) -> Spread:
    return Spread(statistics.median(figures), min(figures), max(figures))


@dataclass(frozen=True)
class Ratio:
    """Ours over others: the ratio of the medians of all runs, and the ratios of the pairs."""

    medians: float
    paired: Spread


def compare_with_floor(
    ours: Sequence[float], before: Sequence[float], after: Sequence[float]
) -> Ratio:
    """Compare runs with the floors of both their sides; a pair is a run and the mean of its two."""
    floors = [(early + late) / 2 for early, late in zip(before, after, strict=True)]
    medians = statistics.median(ours) / statistics.median([*before, *after])
    return Ratio(medians, _compare_pairs(ours, floors))


def compare_runs(ours: Sequence[float], others: Sequence[float]) -> Ratio:
    """Compare runs with those that were measured side by side with them."""
    medians = statistics.median(ours) / statistics.median(others)
    return Ratio(medians, _compare_pairs(ours, others))


def _compare_pairs(ours: Sequence[float], others: Sequence[float]) -> Spread:
    return measure_spread([mine / theirs for mine, theirs in zip(ours, others, strict=True)])


def percentile(figures: Sequence[float], share: float) -> float:
    """Return the least figure that at least this share of the figures do not exceed."""
    ordered = sorted(figures)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


def interpolate(at: float, times: Sequence[float], figures: Sequence[float]) -> float:
    """Return the figure at a time, on the straight line between the samples around it."""
    position = bisect.bisect_left(times, at)
    if position == 0:
        return figures[0]
    if position == len(times):
        return figures[-1]
    (early, late), (low, high) = times[position - 1 : position + 1], figures[position - 1 :][:2]
    return low + (high - low) * (at - early) / (late - early)


def split_by_tenths(
    steps: Sequence[float], times: Sequence[float], figures: Sequence[float]
) -> list[float]:
    """Return by how much a growing figure grew per step, in each tenth of a conversation.

    `steps` are the times at which steps ended; `figures` were sampled at `times`.
    """
    last = len(steps) - 1
    if last < TENTHS:
        raise ValueError(f"{len(steps)} steps have no tenths: {TENTHS + 1} are the fewest.")
    bounds = [round(nth * last / TENTHS) for nth in range(TENTHS + 1)]
    at_bounds = [interpolate(steps[bound], times, figures) for bound in bounds]
    lengths = (late - early for early, late in pairwise(bounds))
    growths = (late - early for early, late in pairwise(at_bounds))
    return [growth / length for growth, length in zip(growths, lengths, strict=True)]


def measure_drift(tenths: Sequence[float]) -> float:
    """Return the last tenth over the first."""
    return tenths[-1] / tenths[0]


def median_row(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the median of each column."""
    return {name: statistics.median(row[name] for row in rows) for name in rows[0]}
