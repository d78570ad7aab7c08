"""The numbers of the plots of a page; `templates/macros.html` draws them as SVG."""

from collections import Counter
from collections.abc import Callable, Sequence
from math import ceil, floor, log10
from typing import NamedTuple

from perdure.evaluation.statistics import Interval, Moments, normal_interval
from perdure.exports.report.formatting import score, score_with_error

TICKS = 5
LABELS = 5
"""Bins of a histogram that have a label."""

STEPS_PER_UNIT = 1_000_000
"""Numbers that lie closer together count as equal."""

MAX_STEPS = 5000
"""Different steps in memory; beyond these, each step becomes ten times as wide."""

BINS = 24
"""The approximate number of bins of a histogram."""

NEARLY_ALL = 0.99

OUTLIER_FACTOR = 2.0
"""With a largest number beyond this many times the 99 % quantile, one bar holds all outliers."""

BARS_LEFT, BARS_RIGHT = 150, 366
HISTOGRAM_LEFT, HISTOGRAM_RIGHT, HISTOGRAM_TOP, HISTOGRAM_BOTTOM = 50, 550, 30, 186


class Scale(NamedTuple):
    """A linear map from numbers to coordinates, with the numbers at which ticks are drawn."""

    low: float
    high: float
    first: float
    last: float
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        inside = min(max(value, self.low), self.high)
        share = (inside - self.low) / (self.high - self.low)
        return round(self.first + share * (self.last - self.first), 1)


def scale(low: float, high: float, first: float, last: float, whole: bool = False) -> Scale:
    """Map a tick at or below `low` to `first`, and one at or above `high` to `last`."""
    step = _round_up((high - low) / TICKS or abs(high) or 1.0)
    step = max(1.0, step) if whole else step
    begin, end = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    ticks = tuple(round(at * step, 12) for at in range(begin, max(end, begin + 1) + 1))
    return Scale(ticks[0], ticks[-1], first, last, ticks)


def _round_up(width: float) -> float:
    """Round up to 1, 2 or 5 times a power of ten."""
    ten: float = 10.0 ** floor(log10(width))
    return next(step * ten for step in (1, 2, 5, 10, 20) if step * ten >= width * (1 - 1e-9))


class Bar(NamedTuple):
    """A bar from 0 to `value`, with its interval from `low` to `high`."""

    name: str
    value: float
    low: float | None
    high: float | None
    label: str


def interval_bar(name: str, mean: float, ends: Interval | None, size: int) -> Bar:
    """Make the bar of a difference over `size` pairs, with the interval of its test."""
    low, high = ends or (None, None)
    return Bar(name or "(empty)", mean, low, high, f"{score(mean, signed=True)} (n = {size:,})")


def mean_bar(name: str, mean: float, error: float | None, size: int) -> Bar:
    """Make the bar of a mean of `size` numbers with its standard error."""
    low, high = (None, None) if error is None else normal_interval(mean, error)
    label = f"{score_with_error(mean, error)} (n = {size:,})"
    return Bar(name or "(empty)", mean, low, high, label)


def bar_scale(bars: Sequence[Bar], is_cut: bool = False) -> Scale:
    """Make the scale of bars; if `is_cut`, there is no room beyond 0 and 1 unless a value is."""
    ends = [end for bar in bars for end in (bar.value, bar.low, bar.high) if end is not None]
    if is_cut and all(0 <= bar.value <= 1 for bar in bars):
        return scale(0.0, 1.0, BARS_LEFT, BARS_RIGHT)
    return scale(min(0.0, *ends), max(0.0, *ends), BARS_LEFT, BARS_RIGHT)


class Bin(NamedTuple):
    """The count of numbers in [`low`, `high`)."""

    low: float
    high: float
    frequency: int


class Distribution:
    """A running histogram of numbers >= 0 (whole ones if `whole`) in memory of a fixed size."""

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
            self._counts, self._step = self._groups(0, 10), self._step * 10

    @property
    def count(self) -> int:
        return self.moments.count

    def quantile(self, share: float) -> float:
        """The number that this share of all numbers does not exceed."""
        return self._quantile(share) / STEPS_PER_UNIT

    def histogram(self) -> tuple[list[Bin], int]:
        """Return the bins, and how many numbers lie from the end of the last one on."""
        low, high = min(self._counts) * self._step, max(self._counts) * self._step
        near_end = self._quantile(NEARLY_ALL)
        end = near_end if high > OUTLIER_FACTOR * near_end > 0 else high
        start = 0 if low < (end + low) / 4 else low
        width = int(_round_up(max(1.0, (end - start) / BINS)))
        width = max(self._step, STEPS_PER_UNIT * self.whole, width)
        start -= start % width
        counts = self._groups(start, width, self._step)
        bins = []
        for at in range(start, end + 1, width):
            frequency = counts.pop((at - start) // width, 0)
            bins.append(Bin(at / STEPS_PER_UNIT, (at + width) / STEPS_PER_UNIT, frequency))
        return bins, counts.total()

    def _groups(self, start: int, width: int, step: int = 1) -> Counter[int]:
        """Count the numbers in each group of `width`, the first of which begins at `start`."""
        counts: Counter[int] = Counter()
        for at, frequency in self._counts.items():
            counts[(at * step - start) // width] += frequency
        return counts

    def _quantile(self, share: float) -> int:
        """Interpolate linearly within the step that holds the quantile."""
        wanted, passed = share * self.count, 0
        for at in sorted(self._counts):
            frequency = self._counts[at]
            if passed + frequency >= wanted:
                return at * self._step + int((self._step - 1) * (wanted - passed) / frequency)
            passed += frequency
        return 0


class Column(NamedTuple):
    label: str
    frequency: int
    colour: str = "main"


class HistogramPlot(NamedTuple):
    """`labels` are texts below the columns, each with its x and its anchor."""

    columns: Sequence[Column]
    scale: Scale
    labels: Sequence[tuple[str, float, str]]
    median: float


def histogram_plot(numbers: Distribution, form: Callable[[float], str]) -> HistogramPlot:
    """Lay out the columns of a histogram; `form` formats a number of it."""
    bins, outliers = numbers.histogram()
    columns = [Column(_range(bin_, numbers.whole, form), bin_.frequency) for bin_ in bins]
    if outliers:
        columns.append(Column(f"{form(bins[-1].high)} and more", outliers, "warn"))
    frequencies = [column.frequency for column in columns]
    width = (HISTOGRAM_RIGHT - HISTOGRAM_LEFT) / len(columns)
    bin_width = bins[0].high - bins[0].low
    # A bin of one whole number stands over that number.
    shift = 0.5 if numbers.whole and bin_width == 1 else 0.0
    middle = min((numbers.quantile(0.5) - bins[0].low) / bin_width + shift, len(bins))
    every = ceil(len(bins) / LABELS)
    last = len(bins) - (every if outliers else 0)
    labels = [
        (form(bins[at].low), HISTOGRAM_LEFT + (at + shift) * width, "middle")
        for at in range(0, min(last + 1, len(bins)), every)
    ]
    if outliers:
        labels.append((f"≥ {form(bins[-1].high)}", HISTOGRAM_RIGHT, "end"))
    heights = scale(0, max(frequencies), HISTOGRAM_BOTTOM, HISTOGRAM_TOP, whole=True)
    return HistogramPlot(columns, heights, labels, HISTOGRAM_LEFT + width * middle)


def _range(bin_: Bin, whole: bool, form: Callable[[float], str]) -> str:
    low, high = form(bin_.low), form(bin_.high - 1 if whole else bin_.high)
    if whole:
        return low if bin_.high - 1 <= bin_.low else f"{low} to {high}"
    return f"about {low}" if low == high else f"{low} to {high}"
