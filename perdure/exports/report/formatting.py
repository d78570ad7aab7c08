"""Formats numbers and texts for people."""

import json
from math import inf, isfinite
from typing import Any

CENT = 0.01

NOTHING = "—"
"""The sign for a missing number."""


def count(number: float) -> str:
    return f"{number:,.0f}"


def score(value: float | None, signed: bool = False) -> str:
    """Format with three decimals, with none from 1000 on."""
    if value is None:
        return NOTHING
    sign = "+" if signed else ""
    if abs(value) >= 1000:
        return format(value, f"{sign},.0f")
    return format(value + 0.0, f"{sign}.3f")


def score_with_error(value: float | None, error: float | None, signed: bool = False) -> str:
    return score(value, signed) + ("" if error is None else f" ± {score(error)}")


def interval(bounds: tuple[float, float] | None, signed: bool = False) -> str:
    if bounds is None:
        return NOTHING
    return f"{score(bounds[0], signed)} to {score(bounds[1], signed)}"


def money(dollars: float) -> str:
    """Format US dollars, with more than two decimals below one dollar."""
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


def p_value(chance: float | None) -> str:
    """Format a p-value; a small one as an upper bound."""
    if chance is None:
        return NOTHING
    return "< 0.0001" if chance < 0.0001 else f"{chance:.4f}"


def shorten(text: str, width: int = 200) -> str:
    """Put a text on one line of at most `width` characters."""
    line = " ".join(text[: 4 * width].split())
    return line if len(line) <= width and len(text) <= 4 * width else f"{line[: width - 1]}…"


def metric_name(scorer: str, metric: str) -> str:
    return f"{scorer} / {metric}" if metric else scorer


def json_value(value: Any) -> str:
    """Format the value of a score or of a setting."""
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def number_first(name: str) -> tuple[bool, float, str]:
    """The sort key that puts names that are numbers first, by their value."""
    try:
        number = float(name)
    except ValueError:
        number = inf
    return (False, number, name) if isfinite(number) else (True, 0.0, name)
