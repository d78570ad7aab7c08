"""How numbers are spread, as a plot: the numbers of it also stand below, as text."""

from collections.abc import Callable, Iterator
from math import ceil
from typing import TypeAlias

from evaluation.report import words
from evaluation.report.page import folded, number, table, text
from evaluation.report.page import words as cell
from evaluation.report.plots import WIDTH, axis, caption, scale, soft, svg
from evaluation.report.spread import Bin, Histogram, Spread

TOP, BOTTOM, MARGIN, HIGH = 30, 44, 50, 230

END = WIDTH - 10

LABELS = 5

Unit: TypeAlias = Callable[[float], str]


def histogram(title: str, name: str, spread: Spread, unit: Unit) -> str:
    """`name` is that of the axis, and `unit` writes a number. Nothing where there are none."""
    if not spread.count:
        return ""
    if not spread.highest:
        told = f"0 for every attempt, of {words.count(spread.count)}."
        return f"<figure>{caption(title, told)}</figure>"
    told = (
        f"{words.count(spread.count)} attempts: median {unit(spread.quantile(0.5))}, mean "
        f"{_mean(spread, unit)}, 90 % up to {unit(spread.quantile(0.9))}, at most "
        f"{unit(spread.highest)}."
    )
    found = spread.histogram()
    rows = [(_range(one, spread.whole, unit), one.many) for one in found.bins if one.many]
    if found.beyond:
        rows.append((_beyond(found, unit), found.beyond))
    numbers = table(
        (name, "#Attempts"), ((cell(said), number(words.count(many))) for said, many in rows)
    )
    plot = svg(f"{title}: {told}", HIGH, _drawn(found, name, spread, unit))
    return f"<figure>{caption(title, told)}{plot}{folded('Numbers', numbers)}</figure>"


def _drawn(found: Histogram, name: str, spread: Spread, unit: Unit) -> Iterator[str]:
    columns = [(_range(one, spread.whole, unit), one.many) for one in found.bins]
    if found.beyond:
        columns.append((_beyond(found, unit), found.beyond))
    up = scale(0, max(many for _, many in columns), HIGH - BOTTOM, TOP, whole=True)
    width = (END - MARGIN) / len(columns)
    for tick in up.ticks:
        y, kind = up.at(tick), "line" if tick else "axis"
        yield f'<line class="{kind}" x1="{MARGIN}" x2="{END}" y1="{y}" y2="{y}"/>'
        yield soft(words.count(tick), MARGIN - 6, y + 4, "end")
    for at, (said, many) in enumerate(columns):
        colour, y = "main" if at < len(found.bins) else "warn", up.at(many)
        yield (
            f'<rect class="fill-{colour}" x="{MARGIN + at * width + 0.75:.1f}" y="{y}" '
            f'width="{width - 1.5:.1f}" height="{HIGH - BOTTOM - y:.1f}">'
            f"<title>{text(said)}: {words.count(many)}</title></rect>"
        )
    yield from _labels(found, width, spread.whole, unit)
    yield from _median(found, width, spread, unit)
    yield axis(name, (MARGIN + END) / 2, HIGH - 6)
    yield soft("attempts", 4, 12, "start")


def _median(found: Histogram, width: float, spread: Spread, unit: Unit) -> Iterator[str]:
    median, first = spread.quantile(0.5), found.bins[0]
    bars = (median - first.low) / (first.high - first.low) + _shift(first, spread.whole)
    x = MARGIN + width * min(bars, len(found.bins))
    side, anchor = (4, "start") if x < WIDTH / 2 else (-4, "end")
    yield f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 14}" y2="{HIGH - BOTTOM}"/>'
    yield soft(f"median {unit(median)}", x + side, TOP - 6, anchor)


def _labels(found: Histogram, width: float, whole: bool, unit: Unit) -> Iterator[str]:
    """Where bins begin, as many as there is room for; what lies beyond has its own."""
    every = ceil(len(found.bins) / LABELS)
    end = len(found.bins) - (every if found.beyond else 0)
    shift = _shift(found.bins[0], whole)
    for at, one in enumerate(found.bins):
        if at % every == 0 and at <= end:
            yield soft(unit(one.low), MARGIN + (at + shift) * width, HIGH - BOTTOM + 16, "middle")
    if found.beyond:
        yield soft(f"≥ {unit(found.bins[-1].high)}", END, HIGH - BOTTOM + 16, "end")


def _shift(first: Bin, whole: bool) -> float:
    """A bin of one whole number stands over that number."""
    return 0.5 if whole and first.high - first.low == 1 else 0.0


def _range(one: Bin, whole: bool, unit: Unit) -> str:
    if not whole:
        low, high = unit(one.low), unit(one.high)
        return f"about {low}" if low == high else f"{low} to {high}"
    last = one.high - 1
    return unit(one.low) if last <= one.low else f"{unit(one.low)} to {unit(last)}"


def _beyond(found: Histogram, unit: Unit) -> str:
    return f"{unit(found.bins[-1].high)} and more"


def _mean(spread: Spread, unit: Unit) -> str:
    mean = spread.moments.mean
    return f"{mean:,.1f}" if spread.whole else unit(mean)
