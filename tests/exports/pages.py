"""A page as a browser would read it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

from perdure.evaluation.result import SampleResult
from perdure.exports.report.batch_comparison import (
    BatchComparison,
    Metric,
    ScoresBySample,
    compare_batches,
)
from perdure.exports.report.comparison import comparison_page

LEFT_OPEN = {"meta", "input"}

WHAT = Metric("exact", "", "mean")


@dataclass
class Table:
    """`rows` are the words in the cells, `kinds` the classes of the rows."""

    heads: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)

    def column(self, name: str) -> list[str]:
        return [row[self.heads.index(name)] for row in self.rows]


class Page(HTMLParser):
    """`sections` are the words of each by its id, `tables` those that stand in it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
        self.open: list[str] = []
        self.names: set[str] = set()
        self.attributes: list[tuple[str, str, str]] = []
        self.sections: dict[str, str] = {}
        self.tables: dict[str, list[Table]] = {}
        self._section = ""
        self.feed(html)
        self.close()
        assert self.open == []

    @property
    def plots(self) -> list[ET.Element]:
        """Parse the plots of the page as XML, which checks that they are well formed."""
        pieces = self.html.split("<svg")[1:]
        return [ET.fromstring("<svg" + piece.split("</svg>")[0] + "</svg>") for piece in pieces]

    def plot(self, title: str) -> ET.Element:
        [plot] = [item for item in self.plots if item.get("aria-label", "").startswith(f"{title}:")]
        return plot

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        attributes = dict(attrs)
        if tag == "section":
            self._section = attributes["id"] or ""
        elif tag == "table":
            self.tables.setdefault(self._section, []).append(Table())
        elif tag == "tr":
            self._table.rows.append([])
            self._table.kinds.append(attributes.get("class") or "")
        elif tag == "th":
            self._table.heads.append("")
        elif tag == "td":
            self._table.rows[-1].append("")
        self.open += [] if tag in LEFT_OPEN else [tag]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "thead":
            self._table.rows.clear()
            self._table.kinds.clear()

    def handle_data(self, data: str) -> None:
        self.sections[self._section] = self.sections.get(self._section, "") + data
        if "td" in self.open:
            self._table.rows[-1][-1] += data
        elif "th" in self.open:
            self._table.heads[-1] += data

    @property
    def _table(self) -> Table:
        return self.tables[self._section][-1]


def words(plot: ET.Element) -> list[str]:
    return ["".join(item.itertext()) for item in plot.iter("text")]


def scores_by_sample(results: Iterable[SampleResult], scorer: str, reducer: str) -> ScoresBySample:
    scores = ScoresBySample(scorer, reducer)
    for result in results:
        scores.add(result)
    return scores


def pair(before: ScoresBySample, after: ScoresBySample) -> BatchComparison:
    return compare_batches("after", before, after, "")


def compared_page(*others: BatchComparison, **fields: Any) -> Page:
    return Page(b"".join(comparison_page("before", WHAT, others, **fields)).decode())
