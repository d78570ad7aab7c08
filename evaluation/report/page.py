"""What every page is made of: nothing of it comes from elsewhere, and all that was said is text.

A browser runs and uses only the script and the style whose hashes the page's own policy names.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from evaluation.report.style import SCRIPT, STYLE
from exports.html import CONTROLS

SECTION = re.compile(r'<section id="([a-z0-9-]+)">\n<h2>(.*?)</h2>')


class Cell(NamedTuple):
    """Of a table: HTML, its class, and the number by which it is sorted."""

    html: str
    kind: str = ""
    value: float | None = None


def text(said: str) -> str:
    """Whatever somebody said, as words on the page."""
    return escape(said.translate(CONTROLS))


def number(said: str, value: float | None = None) -> Cell:
    return Cell(text(said), "n", value)


def words(said: str) -> Cell:
    return Cell(text(said))


def head(title: str, kicker: str, facts: Sequence[str]) -> str:
    """Up to the main part; all but the page's own words is escaped here."""
    told = "".join(f'<p class="soft">{text(one)}</p>\n' for one in facts if one)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{text(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<header><p class="kicker">{text(kicker)}</p>
<h1>{text(title)}</h1>
{told}</header>
<main>
"""


def foot(notes: Iterable[str]) -> str:
    told = "".join(f"<p>{text(note)}</p>\n" for note in notes)
    return f"</main>\n<footer>{told}</footer>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"


def section(name: str, title: str, *parts: str) -> str:
    """Nothing where it has no parts."""
    body = "\n".join(filter(None, parts))
    return f'<section id="{name}">\n<h2>{text(title)}</h2>\n{body}\n</section>\n' if body else ""


def nav(html: str, more: Sequence[tuple[str, str]] = ()) -> str:
    """Ways to the sections of a page, and to `more` of them."""
    found = [*SECTION.findall(html), *more]
    ways = "".join(f'<a href="#{name}">{title}</a>\n' for name, title in found)
    return f"<nav>{ways}</nav>\n"


def paragraph(said: str, kind: str = "soft") -> str:
    return f'<p class="{kind}">{text(said)}</p>' if said else ""


def table(heads: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """A head that begins with # is over numbers. Nothing where there are no rows."""
    told = "".join(map(_head, heads))
    lines = "\n".join(f"<tr>{cells(row)}</tr>" for row in rows)
    if not lines:
        return ""
    return (
        f'<div class="scroll"><table>\n<thead><tr>{told}</tr></thead>\n<tbody>\n{lines}\n'
        "</tbody></table></div>"
    )


def cells(row: Iterable[Cell]) -> str:
    return "".join(map(_cell, row))


def facts(told: Iterable[tuple[str, str]]) -> str:
    found = "\n".join(f"<dt>{text(name)}</dt><dd>{text(one)}</dd>" for name, one in told if one)
    return f"<dl>\n{found}\n</dl>"


def tiles(told: Iterable[tuple[str, str, str]]) -> str:
    """Each a name, what it is, and a line about it."""
    found = "\n".join(
        f'<div class="tile"><span class="soft">{text(name)}</span><b>{text(value)}</b>'
        f'<span class="soft">{text(line)}</span></div>'
        for name, value, line in told
    )
    return f'<div class="tiles">\n{found}\n</div>'


def folded(name: str, html: str) -> str:
    return f"<details><summary>{text(name)}</summary>{html}</details>" if html else ""


def figures(found: Iterable[str]) -> str:
    told = "\n".join(filter(None, found))
    return f'<div class="figures">\n{told}\n</div>' if told else ""


def encoded(html: str) -> bytes:
    """Half of a surrogate pair, as JSON may hold one, becomes a question mark."""
    return html.encode(errors="replace")


def _head(name: str) -> str:
    kind = ' class="n"' if name.startswith("#") else ""
    return f'<th scope="col"{kind}>{text(name.removeprefix("#"))}</th>'


def _cell(cell: Cell) -> str:
    kind = f' class="{cell.kind}"' if cell.kind else ""
    value = f' data-value="{cell.value:.6g}"' if cell.value is not None else ""
    return f"<td{kind}{value}>{cell.html}</td>"


def _hash(content: str) -> str:
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


POLICY = (
    f"default-src 'none'; style-src 'sha256-{_hash(STYLE)}'; script-src 'sha256-{_hash(SCRIPT)}'; "
    "base-uri 'none'; form-action 'none'"
)
