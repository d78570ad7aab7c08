"""The page about a comparison of batches, each against the first."""

from collections.abc import Iterable, Iterator, Sequence

from evaluation.comparison import Change, Comparison
from evaluation.report import words
from evaluation.report.compared import Compared, What, name_of_test, verdict
from evaluation.report.page import (
    Cell,
    encoded,
    figures,
    foot,
    head,
    nav,
    number,
    paragraph,
    section,
    table,
    text,
    tiles,
)
from evaluation.report.page import words as cell
from evaluation.report.plots import Bar, Part, bars, stacked
from evaluation.report.rows import LONGEST
from evaluation.statistics import normal

MOST_CHANGES = 1000
"""Samples of one comparison that are shown."""

HEADS = ("#Pairs", "#Before", "#After", "#Difference", "#Standard error", "#95 % interval")


def comparison(
    first: str, what: What, others: Sequence[Compared], notes: Sequence[str] = (), made: str = ""
) -> Iterator[bytes]:
    """The page, in parts. `notes` say what else differs between the batches."""
    names = ", ".join(one.name for one in others)
    title = f"{first} and {names}"
    body = _overview(first, others) + "".join(
        _one(at, first, one) for at, one in enumerate(others, start=1)
    )
    told = (f"Score: {what.name}", f"Each against {first}; samples are paired by their ids.", made)
    yield encoded(head(words.shortened(title, LONGEST), "Comparison of batches", told))
    yield encoded(nav(body) + "".join(paragraph(note) for note in notes) + body)
    yield encoded(
        foot(
            [
                "A difference is the mean of after - before over the samples that have a score in "
                "both; intervals are of 95 %, and p is the chance of a difference at least as "
                "large where nothing has changed. Of twenty comparisons one "
                "has p < 0.05 by chance.",
                "Made by perdure from the results in the store.",
            ]
        )
    )


def _overview(first: str, others: Sequence[Compared]) -> str:
    """Where there are several; one says all that there is to say itself."""
    if len(others) < 2:
        return ""
    rows = ((cell(one.name), *_numbers(one.comparison)) for one in others)
    plot = bars(
        f"Differences from {first}",
        "difference",
        _bars((one.name, one.comparison) for one in others),
    )
    return section("overview", "Overview", table(("Batch", *HEADS, "#p"), rows), figures([plot]))


def _one(at: int, first: str, one: Compared) -> str:
    found = one.comparison
    told = verdict(found)
    kind = ""
    if found.significant and found.difference is not None:
        kind = " better" if found.difference > 0 else " worse"
    parts = [
        f'<p class="verdict{kind}">{text(told)}</p>',
        _tiles(first, one.name, found),
        _changed(found),
        _sides(first, one.name, found),
        *_groups(one),
        _changes("Better than before", found.better),
        _changes("Worse than before", found.worse),
    ]
    return section(f"batch-{at}", f"{one.name} against {first}", *parts)


def _tiles(first: str, name: str, found: Comparison) -> str:
    between = "" if found.interval is None else words.interval(found.interval, signed=True)
    return tiles(
        (
            ("Before", words.score(found.before), first),
            ("After", words.score(found.after), name),
            (
                "Difference",
                words.score(found.difference, signed=True),
                f"95 %: {between}" if between else "",
            ),
            ("Standard error", words.score(found.standard_error), "of the difference"),
            ("p", words.chance(found.p_value), name_of_test(found)),
            ("Pairs", words.count(found.pairs), "samples scored in both"),
        )
    )


def _changed(found: Comparison) -> str:
    """How many became better, worse, or neither."""
    if not found.pairs:
        return ""
    better, worse = len(found.better), len(found.worse)
    parts = (
        Part("better", better, "good"),
        Part("the same", found.pairs - better - worse, "idle"),
        Part("worse", worse, "bad"),
    )
    legend = "".join(
        f'<span><i class="key {part.colour}"></i>{part.name}: {part.many:,}</span>'
        for part in parts
    )
    return f'{stacked("Samples", parts)}<p class="legend">{legend}</p>'


def _sides(first: str, name: str, found: Comparison) -> str:
    told = [
        f"Scored only in {side}: {len(ids):,} ({_listed(ids)})."
        for side, ids in ((first, found.only_before), (name, found.only_after))
        if ids
    ]
    return "".join(map(paragraph, told))


def _groups(one: Compared) -> Iterator[str]:
    plots = []
    for key, groups in one.groups.items():
        rows = (
            (cell(_short(value) or "(empty)"), *_numbers(found)) for value, found in groups.items()
        )
        plot = bars(f"Difference by {_short(key)}", "difference", _bars(groups.items()))
        numbers = table((_short(key), *HEADS, "#p"), rows)
        plots.append(f"<h3>By {text(_short(key))}</h3>{figures([plot])}{numbers}")
    yield "".join(plots)
    if one.ungrouped:
        keys = ", ".join(map(_short, one.ungrouped[:20]))
        yield paragraph(f"Without a breakdown, for there are too many: {keys}.")
    if plots:
        yield paragraph(
            "Of many groups some differ by chance: a p below 0.05 in one of them says little."
        )


def _numbers(found: Comparison) -> tuple[Cell, ...]:
    return (
        number(words.count(found.pairs)),
        *(number(words.score(one)) for one in (found.before, found.after)),
        Cell(f"<strong>{words.score(found.difference, signed=True)}</strong>", "n"),
        number(words.score(found.standard_error)),
        number(words.interval(found.interval, signed=True)),
        number(words.chance(found.p_value)),
    )


def _bars(found: Iterable[tuple[str, Comparison]]) -> list[Bar]:
    return [_bar(name, one) for name, one in found if one.pairs]


def _bar(name: str, found: Comparison) -> Bar:
    difference, error = found.difference or 0.0, found.standard_error
    low, high = (None, None) if error is None else normal(difference, error)
    margin = "" if error is None else f" ± {words.score(error)}"
    told = f"{words.score(difference, signed=True)}{margin} (n = {found.pairs:,})"
    return Bar(name or "(empty)", difference, low, high, told)


def _changes(title: str, changes: Sequence[Change]) -> str:
    rows = (
        (
            cell(_short(one.id)),
            *(number(words.score(score)) for score in (one.before, one.after)),
            number(words.score(one.after - one.before, signed=True)),
        )
        for one in changes[:MOST_CHANGES]
    )
    told = table(("Sample", "#Before", "#After", "#Difference"), rows)
    hidden = len(changes) - MOST_CHANGES
    more = f"{hidden:,} more that changed less are not shown." if hidden > 0 else ""
    name = f"{title}: {len(changes):,}"
    return f"<h3>{name}</h3>{told}{paragraph(more)}" if told else ""


def _listed(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - 20:,} more" if len(ids) > 20 else ""
    return ", ".join(map(_short, ids[:20])) + more


def _short(name: str) -> str:
    return words.shortened(name, LONGEST)
