"""The table of `perdure ls`: as wide as the terminal, and one line for each conversation."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from perdure.cli.output import escape_controls
from perdure.storage.summary import Summary

if TYPE_CHECKING:
    from rich.text import Text

# rich is slow to import: functions import it for a terminal.

STATUS_WORDS = {
    "waiting_for_confirmation": "needs approval",
    "waiting_for_answer": "asks you",
    "awaiting_user": "awaits you",
}
"""The words for statuses whose names are long."""

STALLED = "stalled"
"""The word for a conversation that does not go on."""

STYLES = {
    **dict.fromkeys(("needs approval", "asks you", STALLED, "limited", "rejected"), "yellow"),
    **dict.fromkeys(("error", "stuck"), "red"),
}

MIN_ID_CHARS = 13
"""The characters of an id that hold its time."""

MODEL_WIDTH = 110
"""The width of a terminal that has room for models and costs."""

MODEL_SHARE = 4
"""The part of the width that models may take: a fourth."""


def describe_status(summary: Summary) -> str:
    """Return the word for the status."""
    if summary.trouble:
        return STALLED
    return STATUS_WORDS.get(summary.phase, summary.phase)


def show_table(summaries: Sequence[Summary], ids: Iterable[str], now: datetime) -> None:
    """Print the summaries; an id is cut to what is unique among `ids`, and USER/ID is whole."""
    from rich.table import Table

    from perdure.cli.consoles import stdout

    wide = stdout.width >= MODEL_WIDTH
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("ID", "STATUS", "EVENTS", *(("COST",) if wide else ()), "LAST EVENT"):
        is_number = name in ("EVENTS", "COST")
        table.add_column(name, no_wrap=True, justify="right" if is_number else "left")
    if wide:
        widest = stdout.width // MODEL_SHARE
        table.add_column("MODEL", no_wrap=True, max_width=widest, overflow="ellipsis")
    table.add_column("TITLE", ratio=1)
    length = shortest_unique_length(ids)
    for summary in summaries:
        table.add_row(*_row(summary, length, wide, now))
    stdout.print(table, soft_wrap=False)


def _row(summary: Summary, id_length: int, wide: bool, now: datetime) -> "list[Text]":
    from rich.text import Text

    status = describe_status(summary)
    title = Text(escape_controls(_join_words(summary.title)), no_wrap=True, overflow="ellipsis")
    if summary.tags:
        title.append(escape_controls(f"  [{', '.join(summary.tags)}]"), "cyan")
    return [
        Text(summary.id if "/" in summary.id else summary.id[:id_length]),
        Text(status, STYLES.get(status, "")),
        Text(f"{summary.events:,}"),
        *([Text(_describe_cost(summary, 2), "dim")] if wide else []),
        Text(format_age(summary.last_event, now), "dim"),
        *([Text(escape_controls(summary.model or "-"), "dim")] if wide else []),
        title,
    ]


def show_line(summary: Summary) -> None:
    """Print a summary on one line, whole, with tabs between the fields."""
    cells = (
        summary.id,
        STALLED if summary.trouble else summary.status,
        str(summary.events),
        _describe_cost(summary, 4).removeprefix("$"),
        format_local_time(summary.last_event),
        summary.model or "-",
        _join_words(summary.title),
        ",".join(summary.tags),
    )
    print("\t".join(escape_controls(_join_words(cell)) for cell in cells))


def _join_words(text: str | None) -> str:
    return " ".join((text or "").split())


def format_local_time(timestamp: str | None) -> str:
    """Format an ISO time in the zone of this machine, with its offset."""
    if timestamp is None:
        return "-"
    return datetime.fromisoformat(timestamp).astimezone().isoformat(timespec="seconds")


def format_age(timestamp: str | None, now: datetime) -> str:
    """Format how long ago it was; beyond a week the date, in the zone of this machine."""
    if timestamp is None:
        return "-"
    time = datetime.fromisoformat(timestamp).astimezone(UTC)
    age = max(timedelta(), now - time)
    if age >= timedelta(days=7):
        return f"{time.astimezone():%Y-%m-%d}"
    units = ((timedelta(days=1), "d"), (timedelta(hours=1), "h"), (timedelta(minutes=1), "min"))
    for unit, name in units:
        if age >= unit:
            return f"{age // unit} {name} ago"
    return f"{age // timedelta(seconds=1)} s ago"


def shortest_unique_length(ids: Iterable[str]) -> int:
    """Return the number of characters by which all ids differ, at least MIN_ID_CHARS."""
    return max([MIN_ID_CHARS, *(_shared(*pair) + 1 for pair in pairwise(sorted(ids)))])


def _shared(left: str, right: str) -> int:
    pairs = zip(left, right, strict=False)
    return next((nth for nth, (a, b) in enumerate(pairs) if a != b), len(left))


def _describe_cost(summary: Summary, decimals: int) -> str:
    """Describe the cost in US dollars; a question mark stands for one that is not known."""
    return "?" if summary.cost is None else f"${summary.cost:.{decimals}f}"
