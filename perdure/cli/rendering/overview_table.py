"""The screen of `perdure top`, and its lines on a pipe."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from perdure.cli.output import escape_controls, shorten_line
from perdure.cli.rendering.conversation_table import (
    MIN_ID_CHARS,
    STATUS_WORDS,
    STYLES,
    format_age,
    format_local_time,
)
from perdure.operations.overview import ConversationAtWork, Overview, QueueState
from perdure.wording import count

if TYPE_CHECKING:
    from rich.console import RenderableType

# rich is slow to import: functions import it for a terminal.

COLUMNS = ("ID", "USER", "STATUS", "SINCE", "STEP", "STEPS", "COST", "AGENT", "MODEL")

NUMBERS = ("STEPS", "COST")

MAX_WIDTHS = {"USER": 16, "AGENT": 16, "MODEL": 24}
"""Characters of names that may be long."""


def draw_overview(overview: Overview, now: datetime) -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    heads = [
        Text(describe_counts(overview)),
        Text(_describe_queues(overview), _style_of_queues(overview)),
        *(Text(line) for line in _describe_batches(overview)),
        Text(""),
    ]
    if not overview.conversations:
        return Group(*heads, Text("No conversation is at work.", "dim"))
    return Group(*heads, _draw_table(overview, now))


def _draw_table(overview: Overview, now: datetime) -> "RenderableType":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", expand=True)
    for name in COLUMNS:
        table.add_column(
            name, no_wrap=True, justify="right" if name in NUMBERS else "left", overflow="ellipsis"
        )
    table.add_column("TROUBLE", no_wrap=True, ratio=1, overflow="ellipsis")
    for item in overview.conversations:
        cells = dict(zip(COLUMNS, map(escape_controls, _cells(item, now)), strict=True))
        texts = {name: Text(_shorten(name, cell)) for name, cell in cells.items()}
        texts["STATUS"].stylize(STYLES.get(cells["STATUS"], ""))
        trouble = Text(shorten_line(escape_controls(item.trouble or "")), "red")
        table.add_row(*texts.values(), trouble)
    return table


def _shorten(name: str, cell: str) -> str:
    """Cut a name off in front: the ends of models' names tell most."""
    width = MAX_WIDTHS.get(name, len(cell))
    return cell if len(cell) <= width else f"…{cell[1 - width :]}"


def _cells(item: ConversationAtWork, now: datetime) -> list[str]:
    return [
        item.id[:MIN_ID_CHARS],
        item.user_id,
        _describe_status(item),
        format_age(item.since.isoformat(), now).removesuffix(" ago"),
        _describe_step(item),
        f"{item.steps:,}",
        f"${item.cost:.2f}",
        item.agent or "-",
        item.model or "-",
    ]


def _describe_status(item: ConversationAtWork) -> str:
    return STATUS_WORDS.get(item.status, item.status)


def _describe_step(item: ConversationAtWork) -> str:
    tries = f" (attempt {item.attempt})" if item.attempt > 1 else ""
    return f"{item.step or '-'}{tries}"


def describe_counts(overview: Overview) -> str:
    """Describe how many conversations there are of each status that is not closed."""
    parts = [
        f"{number:,} {STATUS_WORDS.get(status, status)}"
        for status, number in overview.counts.items()
        if number and status != "closed"
    ]
    return f"Conversations: {', '.join(parts) or 'none is open'}."


def _describe_queues(overview: Overview) -> str:
    sentences = (_describe_queue(kind, state) for kind, state in overview.queues.items())
    return f"Workers: {'; '.join(sentences)}."


def _describe_queue(kind: str, state: QueueState) -> str:
    waiting = f", of which the first has waited {state.oldest_seconds:.0f} s"
    tasks = f"{state.backlog:,} waiting{waiting if state.backlog else ''}"
    return f"{state.workers} for {kind}, {tasks}"


def _style_of_queues(overview: Overview) -> str:
    return "red" if any(not state.workers for state in overview.queues.values()) else "dim"


def _describe_batches(overview: Overview) -> Iterator[str]:
    for batch in overview.batches:
        done = batch.scored + batch.limited + batch.failed
        parts = [f"{done:,} of {count(batch.expected, 'sample')}", f"{batch.running:,} at work"]
        parts += [f"{batch.failed:,} failed"] if batch.failed else []
        yield escape_controls(f"Batch {batch.name}: {', '.join(parts)}.")


def list_lines(overview: Overview) -> Iterator[str]:
    """Yield a line for each conversation, whole, with tabs between the fields."""
    for item in overview.conversations:
        cells = (
            *(item.id, item.user_id, item.status, format_local_time(item.since.isoformat())),
            *(item.step or "-", str(item.attempt), str(item.steps), f"{item.cost:.4f}"),
            *(item.agent or "-", item.model or "-", item.batch or "-", item.trouble or ""),
        )
        yield "\t".join(escape_controls(" ".join(cell.split())) for cell in cells)
