"""Plots as SVG within a page: the numbers of each also stand beside it, as text."""

from collections.abc import Iterable, Sequence
from math import ceil, floor, log10
from typing import NamedTuple

from evaluation.report import words
from evaluation.report.page import text

WIDTH = 560
LEFT, RIGHT = 150, 366
"""Where the bars of groups begin and end; names stand before them, numbers behind."""

ROW = 24
NAME = 20
"""Characters of a name that fit before a bar."""

TICKS = 5


class Bar(NamedTuple):
    """`low` and `high` are the ends of its interval."""

    name: str
    value: float
    low: float | None
    high: float | None
    told: str


class Part(NamedTuple):
    """Of a whole; `colour` is a class of the style."""

    name: str
    many: int
    colour: str


class Scale(NamedTuple):
    """Which number lies where, and where a tick is drawn."""

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
    """From a tick at or below `low` to one at or above `high`."""
    step = _step((high - low) / TICKS or abs(high) or 1.0)
    step = max(1.0, step) if whole else step
    begin, end = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    end = max(end, begin + 1)
    ticks = tuple(round(one * step, 12) for one in range(begin, end + 1))
    return Scale(ticks[0], ticks[-1], first, last, ticks)


def bars(
    title: str, unit: str, told: Sequence[Bar], within: tuple[float, float] | None = None
) -> str:
    """A bar for each, from 0 to its value, with its interval. Nothing where there are none.

    What lies outside of `within` is cut off; None means that there is room for all.
    """
    if not told:
        return ""
    ends = [end for bar in told for end in (bar.value, bar.low, bar.high) if end is not None]
    low, high = within or (min(0.0, *ends), max(0.0, *ends))
    across = scale(low, high, LEFT, RIGHT)
    under = 8 + ROW * len(told)
    lines = [*_grid(across, under), *(_bar(across, at, bar) for at, bar in enumerate(told))]
    lines.append(axis(unit, (LEFT + RIGHT) / 2, under + 34))
    largest = max(told, key=lambda one: one.value)
    least = min(told, key=lambda one: one.value)
    said = f"{title}: {len(told)} bars, from {_named(least)} to {_named(largest)}."
    return f"<figure>{caption(title)}{svg(said, under + 42, lines)}</figure>"


def stacked(title: str, parts: Iterable[Part]) -> str:
    """One bar with all parts of a whole."""
    shown = [part for part in parts if part.many]
    whole = sum(part.many for part in shown)
    at, lines = 0.0, []
    for part in shown:
        width = WIDTH * part.many / whole
        lines.append(
            f'<rect class="fill-{part.colour}" x="{at:.2f}" y="0" width="{width:.2f}" height="22">'
            f"<title>{text(part.name)}: {part.many:,}</title></rect>"
        )
        at += width
    said = ", ".join(f"{part.name} {part.many:,}" for part in shown)
    return svg(f"{title}: {said or 'nothing'}.", 22, lines, ' class="thin"')


def _grid(across: Scale, under: float) -> list[str]:
    lines = []
    for tick in across.ticks:
        x, kind = across.at(tick), "axis" if tick == 0 else "line"
        lines.append(f'<line class="{kind}" x1="{x}" x2="{x}" y1="4" y2="{under}"/>')
        lines.append(soft(f"{tick:g}", x, under + 15, "middle"))
    return lines


def _bar(across: Scale, at: int, bar: Bar) -> str:
    top, middle = 8 + ROW * at, 8 + ROW * at + ROW / 2
    x, zero = across.at(bar.value), across.at(0)
    left, width = min(x, zero), round(max(abs(x - zero), 0.5), 1)
    name = words.shortened(bar.name, NAME)
    error = "" if bar.low is None or bar.high is None else _error(across, bar.low, bar.high, middle)
    return (
        f'<text x="{LEFT - 8}" y="{middle + 4}" text-anchor="end">{text(name)}</text>'
        f'<rect class="fill-main" x="{left}" y="{top + 4}" width="{width}" height="{ROW - 8}" '
        f'rx="2"><title>{text(words.shortened(bar.name, 200))}: {text(bar.told)}</title></rect>'
        f'{error}<text class="soft" x="{RIGHT + 10}" y="{middle + 4}">{text(bar.told)}</text>'
    )


def _error(across: Scale, low: float, high: float, y: float) -> str:
    first, last = across.at(low), across.at(high)
    ends = "".join(
        f'<line class="error" x1="{x}" x2="{x}" y1="{y - 4}" y2="{y + 4}"/>' for x in (first, last)
    )
    return f'<line class="error" x1="{first}" x2="{last}" y1="{y}" y2="{y}"/>{ends}'


def svg(said: str, height: float, lines: Iterable[str], kind: str = "") -> str:
    body = "\n".join(lines)
    return (
        f'<svg{kind} role="img" aria-label="{text(said)}" viewBox="0 0 {WIDTH} {height:g}"'
        f"{_unstretched(kind)}>\n{body}\n</svg>"
    )


def _unstretched(kind: str) -> str:
    return ' preserveAspectRatio="none"' if kind else ""


def caption(title: str, note: str = "") -> str:
    return f"<figcaption><b>{text(title)}</b><span>{text(note)}</span></figcaption>"


def axis(name: str, x: float, y: float) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="middle">{text(name)}</text>'


def soft(said: str, x: float, y: float, anchor: str) -> str:
    return f'<text class="soft" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text(said)}</text>'


def _named(bar: Bar) -> str:
    return f"{words.shortened(bar.name, NAME)} ({bar.told})"


def _step(width: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    ten: float = 10.0 ** floor(log10(width))
    return next(one * ten for one in (1, 2, 5, 10, 20) if one * ten >= width * (1 - 1e-9))
