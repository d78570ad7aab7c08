"""Numbers and texts as people read them."""

import json
from math import inf, isfinite
from typing import Any

CENT = 0.01

NOTHING = "—"
"""Where there is no number."""


def count(number: float) -> str:
    return f"{number:,.0f}"


def score(value: float | None, signed: bool = False) -> str:
    """Three decimals, and fewer digits where the numbers are large."""
    if value is None:
        return NOTHING
    sign = "+" if signed else ""
    if abs(value) >= 1000:
        return format(value, f"{sign},.0f")
    return format(value + 0.0, f"{sign}.3f")


def interval(bounds: tuple[float, float] | None, signed: bool = False) -> str:
    if bounds is None:
        return NOTHING
    return f"{score(bounds[0], signed)} to {score(bounds[1], signed)}"


def money(dollars: float) -> str:
    """Cents, and more decimals where a cent is too coarse."""
    if dollars and abs(dollars) < CENT:
        return f"${dollars:.2g}" if abs(dollars) >= 1e-4 else f"${dollars:.1e}"
    return f"${dollars:,.4f}" if abs(dollars) < 1 else f"${dollars:,.2f}"


def duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min"


def share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else NOTHING


def chance(p_value: float | None) -> str:
    """A p-value; a small one as what it is less than."""
    if p_value is None:
        return NOTHING
    return "< 0.0001" if p_value < 0.0001 else f"{p_value:.4f}"


def shortened(text: str, most: int) -> str:
    """The text on one line, of at most so many characters."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most and len(text) <= 4 * most else f"{line[: most - 1]}…"


def metric_name(scorer: str, metric: str) -> str:
    return f"{scorer} / {metric}" if metric else scorer


def value(given: Any) -> str:
    """A value of a score as it was given, or a setting."""
    if isinstance(given, float):
        return f"{given:g}"
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def order(name: str) -> tuple[bool, float, str]:
    """Sorts names that are numbers by their value, and before all others."""
    try:
        number = float(name)
    except ValueError:
        number = inf
    return (False, number, name) if isfinite(number) else (True, 0.0, name)
