"""The table of samples of a batch, each with the way to its conversation."""

from collections.abc import Iterator
from urllib.parse import quote

from evaluation.report import words
from evaluation.report.gathered import About
from evaluation.report.page import Cell, cells, number, paragraph, text
from evaluation.report.page import words as cell
from evaluation.report.rows import Kind, Row, Rows

KINDS: dict[Kind, str] = {
    "failed": "failed",
    "wrong": "scored below 1",
    "limited": "ended by a limit",
    "right": "all else",
}

FILTER = """<div class="filter"><label>Find <input id="words" type="search"></label>
<label>Show <select id="kind"><option value="">all</option>{options}</select></label>
<span id="said" class="soft"></span></div>
"""

HEAD = """<div class="scroll"><table id="rows">
<thead><tr><th scope="col" data-sort="text">Sample</th>
<th scope="col" class="n" data-sort="number">Epoch</th>
<th scope="col" data-sort="text">Status</th>
<th scope="col" data-sort="text">Scores</th>
<th scope="col" data-sort="text">Answer, or why it failed</th>
<th scope="col" data-sort="text">Target</th>
<th scope="col" class="n" data-sort="number">Cost</th>
<th scope="col" class="n" data-sort="number">Time</th>
<th scope="col" class="n" data-sort="number">Turns</th>
<th scope="col">Conversation</th></tr></thead>
<tbody>
"""


def samples(about: About, rows: Rows) -> Iterator[str]:
    """Few rows at a time. Nothing where there are none."""
    shown, hidden = rows.shown(), rows.hidden()
    if not shown:
        return
    present = [kind for kind in KINDS if any(row.kind == kind for row in shown)]
    options = "".join(f'<option value="{kind}">{KINDS[kind]}</option>' for kind in present)
    yield '<section id="samples">\n<h2>Samples</h2>\n'
    yield paragraph(_told(len(shown), rows.counts.total(), hidden))
    yield FILTER.format(options=options) + HEAD
    for row in shown:
        yield f'<tr class="{row.kind}">{cells(_cells(about, row))}</tr>\n'
    yield "</tbody></table></div>\n</section>\n"


def _told(shown: int, whole: int, hidden: dict[Kind, int]) -> str:
    first = "What failed comes first, then what scored below 1."
    if not hidden:
        return f"All {whole:,} with a result. {first}"
    kinds = ", ".join(f"{hidden[kind]:,} {KINDS[kind]}" for kind in KINDS if hidden.get(kind))
    return (
        f"{shown:,} of {whole:,} with a result. {first} Not shown: {whole - shown:,} ({kinds}); "
        "they count in all numbers above."
    )


def _cells(about: About, row: Row) -> Iterator[Cell]:
    yield cell(row.sample)
    yield number(str(row.epoch), row.epoch)
    yield cell(row.status)
    yield cell(row.scores)
    yield Cell(text(row.answer), "long")
    yield Cell(text(row.target), "long")
    yield number(words.money(row.cost), row.cost)
    yield number(words.duration(row.seconds), row.seconds)
    yield number(words.count(row.turns), row.turns)
    yield Cell(_ways(about, row.conversation_id))


def _ways(about: About, conversation: str) -> str:
    """How to see a conversation: in Temporal, as a page beside this one, or by a command."""
    name = quote(conversation, safe="", errors="replace")
    ways = []
    if about.conversations is not None:
        ways.append(f'<a href="{text(about.conversations)}/{text(name)}.html">page</a>')
    if about.ui is not None:
        place = (
            f"{about.ui.rstrip('/')}/namespaces/{quote(about.namespace, safe='', errors='replace')}"
        )
        ways.append(f'<a href="{text(place)}/workflows/conv-{text(name)}">workflow</a>')
    return " ".join([*ways, f"<code>perdure show {text(conversation)}</code>"])
