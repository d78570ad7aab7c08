"""The geometry of the plots of a page; `templates/macros.html` draws them as SVG."""

from collections.abc import Callable, Sequence
from math import ceil, floor, log10
from typing import NamedTuple

from perdure.exports.report import formatting
from perdure.exports.report.distribution import Bin, Distribution

TICKS = 5
LABELS = 5
"""Bins of a histogram that have a label."""

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


class Bar(NamedTuple):
    """A bar from 0 to `value`, with its interval from `low` to `high`."""

    name: str
    value: float
    low: float | None
    high: float | None
    label: str


class BarChart(NamedTuple):
    title: str
    unit: str
    bars: Sequence[Bar]
    scale: Scale


def bar_chart(
    title: str, unit: str, bars: Sequence[Bar], limits: tuple[float, float] | None = None
) -> BarChart | None:
    """Draw a bar for each, cut off at `limits`; without them there is room for all."""
    if not bars:
        return None
    ends = [end for bar in bars for end in (bar.value, bar.low, bar.high) if end is not None]
    low, high = limits or (min(0.0, *ends), max(0.0, *ends))
    return BarChart(title, unit, bars, scale(low, high, BARS_LEFT, BARS_RIGHT))


class Column(NamedTuple):
    label: str
    frequency: int


class HistogramPlot(NamedTuple):
    """`labels` are texts below columns with their x; `outliers` is the column of the outliers."""

    title: str
    unit: str
    summary: str
    columns: Sequence[Column]
    outliers: Column | None
    scale: Scale | None
    labels: Sequence[tuple[float, str]]
    outlier_label: str
    median: tuple[float, str]


def histogram_plot(
    title: str, unit: str, numbers: Distribution, form: Callable[[float], str]
) -> HistogramPlot | None:
    """Lay out the columns of a histogram; `form` formats a number of it."""
    if not numbers.count:
        return None
    if not numbers.highest:
        summary = f"0 for every attempt, of {formatting.count(numbers.count)}."
        return HistogramPlot(title, unit, summary, (), None, None, (), "", (0.0, ""))
    median, mean = numbers.quantile(0.5), numbers.moments.mean
    summary = (
        f"{formatting.count(numbers.count)} attempts: median {form(median)}, mean "
        f"{f'{mean:,.1f}' if numbers.whole else form(mean)}, 90 % up to "
        f"{form(numbers.quantile(0.9))}, at most {form(numbers.highest)}."
    )
    found = numbers.histogram()
    columns = [Column(_range(each, numbers.whole, form), each.frequency) for each in found.bins]
    end, first = form(found.bins[-1].high), found.bins[0]
    outliers = Column(f"{end} and more", found.beyond) if found.beyond else None
    shown = [*columns, *([outliers] if outliers else [])]
    width = (HISTOGRAM_RIGHT - HISTOGRAM_LEFT) / len(shown)
    # A bin of one whole number stands over that number.
    shift = 0.5 if numbers.whole and first.high - first.low == 1 else 0.0
    bars = (median - first.low) / (first.high - first.low) + shift
    every = ceil(len(columns) / LABELS)
    last = len(columns) - (every if outliers else 0)
    return HistogramPlot(
        title,
        unit,
        summary,
        columns,
        outliers,
        scale(0, max(column.frequency for column in shown), HISTOGRAM_BOTTOM, HISTOGRAM_TOP, True),
        [
            (HISTOGRAM_LEFT + (at + shift) * width, form(each.low))
            for at, each in enumerate(found.bins)
            if at % every == 0 and at <= last
        ],
        f"≥ {end}" if outliers else "",
        (HISTOGRAM_LEFT + width * min(bars, len(columns)), f"median {form(median)}"),
    )


def _range(bin_: Bin, whole: bool, form: Callable[[float], str]) -> str:
    low, high = form(bin_.low), form(bin_.high - 1 if whole else bin_.high)
    if whole:
        return low if bin_.high - 1 <= bin_.low else f"{low} to {high}"
    return f"about {low}" if low == high else f"{low} to {high}"


def _round_up(width: float) -> float:
    """Round up to 1, 2 or 5 times a power of ten."""
    ten: float = 10.0 ** floor(log10(width))
    return next(step * ten for step in (1, 2, 5, 10, 20) if step * ten >= width * (1 - 1e-9))
