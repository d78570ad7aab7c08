"""A comparison as lines for a terminal, and as a document for programs."""

from collections.abc import Iterator, Sequence
from typing import Any

from evaluation.comparison import Change, Comparison
from evaluation.report import words
from evaluation.report.compared import Compared, What, verdict

FIRST = 20
"""Samples of a list that are shown unless all are asked for."""


def lines(first: str, what: What, others: Sequence[Compared], every: bool) -> Iterator[str]:
    yield f"score: {what.name}"
    for one in others:
        found = one.comparison
        yield ""
        yield f"{one.name} against {first}"
        yield f"  samples in both  {found.pairs:,}"
        if found.pairs:
            yield from _means(first, one)
        yield f"  {verdict(found)}"
        yield from _only(first, found.only_before)
        yield from _only(one.name, found.only_after)
        yield from _changes("better", found.better, every)
        yield from _changes("worse", found.worse, every)


def _means(first: str, one: Compared) -> Iterator[str]:
    found = one.comparison
    error = "" if found.standard_error is None else f" ± {words.score(found.standard_error)}"
    yield f"  before           {words.score(found.before)}  ({first})"
    yield f"  after            {words.score(found.after)}  ({one.name})"
    yield f"  difference       {words.score(found.difference, signed=True)}{error} (standard error)"
    if found.interval is not None:
        yield f"  95 % interval    {words.interval(found.interval, signed=True)}"
    yield f"  p-value          {words.chance(found.p_value)}"


def _only(name: str, ids: Sequence[str]) -> Iterator[str]:
    if ids:
        more = f" and {len(ids) - FIRST:,} more" if len(ids) > FIRST else ""
        yield f"  scored only in {name}: {len(ids):,} ({', '.join(ids[:FIRST])}{more})"


def _changes(way: str, changes: Sequence[Change], every: bool) -> Iterator[str]:
    yield f"  {way}: {len(changes):,}"
    shown = changes if every else changes[:FIRST]
    for one in shown:
        yield f"    {one.id}  {words.score(one.before)} -> {words.score(one.after)}"
    if len(shown) < len(changes):
        yield f"    ... and {len(changes) - len(shown):,} more: --all lists them"


def document(first: str, what: What, others: Sequence[Compared]) -> dict[str, Any]:
    return {
        "before": first,
        "scorer": what.scorer,
        "metric": what.metric,
        "reducer": what.reducer,
        "comparisons": [
            {
                "after": one.name,
                **_numbers(one.comparison),
                "groups": {
                    key: {value: _in_short(found) for value, found in groups.items()}
                    for key, groups in one.groups.items()
                },
            }
            for one in others
        ],
    }


def _numbers(found: Comparison) -> dict[str, Any]:
    """The means are called as they are in the page, for `before` and `after` name batches."""
    told = found.model_dump(mode="json", exclude={"before", "after"})
    means = {"mean_before": found.before, "mean_after": found.after}
    return {**means, **told, "significant": found.significant}


def _in_short(found: Comparison) -> dict[str, Any]:
    counts = {"better": len(found.better), "worse": len(found.worse)}
    lists = {"better", "worse", "only_before", "only_after"}
    return {name: one for name, one in _numbers(found).items() if name not in lists} | counts
