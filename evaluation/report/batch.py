"""The page about a batch: one file that needs nothing else, also of 100,000 samples."""

from collections.abc import Iterable, Iterator

from evaluation.report import words
from evaluation.report.gathered import About, Gathered
from evaluation.report.histogram import histogram
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
from evaluation.report.plots import Part, stacked
from evaluation.report.samples import samples
from evaluation.report.scores import headline, scores
from evaluation.report.setup import setup
from evaluation.report.spent import spent
from evaluation.result import SampleResult
from evaluation.summary import Counts, Summary

COUNTED = (
    ("scored", "good", "scored"),
    ("limited", "warn", "ended by a limit"),
    ("failed", "bad", "failed, without a score"),
    ("running", "busy", "running"),
    ("missing", "idle", "missing"),
)
"""Fields of the counts with their colours and words."""


def report(about: About, results: Iterable[SampleResult]) -> Iterator[bytes]:
    gathered = Gathered(about.spec)
    for result in results:
        gathered.add(result)
    return page(about, gathered)


def page(about: About, gathered: Gathered) -> Iterator[bytes]:
    """The page of what was gathered, in parts."""
    summary = gathered.summary(about)
    spec = about.spec
    told = (
        f"{spec.agent.model.name} on {spec.dataset.path or spec.dataset.function}",
        _size(about, gathered),
        about.made,
    )
    body = "".join(
        (
            _counts(about, summary.counts),
            scores(summary, spec.reducers[0]),
            _spreads(gathered),
            _failures(gathered),
            _limits(summary),
            spent(summary),
            setup(spec),
        )
    )
    yield encoded(head(spec.name, "Batch evaluation", told))
    yield encoded(
        nav(body, [("samples", "Samples")] if gathered.samples else [])
        + _tiles(about, gathered, summary)
        + body
    )
    yield from map(encoded, samples(about, gathered.rows))
    yield encoded(foot(["Made by perdure from the results in the store."]))


def _size(about: About, gathered: Gathered) -> str:
    samples = about.expected // about.spec.epochs
    epochs = f", {about.spec.epochs:,} epochs each" if about.spec.epochs > 1 else ""
    return f"{samples:,} samples{epochs}; {gathered.samples:,} have a result"


def _tiles(about: About, gathered: Gathered, summary: Summary) -> str:
    counts, first = summary.counts, next((one.called for one in about.spec.scorers), None)
    found = headline(summary, first)
    told = []
    if found is not None:
        name, estimate = found
        margin = (
            "" if estimate.standard_error is None else f"± {words.score(estimate.standard_error)}"
        )
        told.append(("Score", words.score(estimate.mean), f"{margin} {name}"))
    cost = summary.usage.cost + summary.grading.cost
    told += [
        ("Done", words.share(counts.done, counts.expected), _of(counts.done, counts.expected)),
        ("Failed", words.count(counts.failed), words.share(counts.failed, counts.expected)),
        ("Cost", words.money(cost), f"{summary.attempts:,} attempts"),
        ("Median time", words.duration(gathered.seconds.quantile(0.5)), "of a sample's epoch"),
        ("Median turns", words.count(gathered.turns.quantile(0.5)), "answers of the model"),
    ]
    return tiles(told)


def _of(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}"


def _counts(about: About, counts: Counts) -> str:
    parts = [
        Part(_named(name, said, about), getattr(counts, name), colour)
        for name, colour, said in COUNTED
    ]
    if about.running is None:
        parts = [part for part in parts if part.name != "running"]
    legend = "".join(
        f'<span><i class="key {part.colour}"></i>{part.name}: {part.many:,}</span>'
        for part in parts
    )
    added = " + ".join(f"{part.many:,}" for part in parts)
    unit = "epochs of samples" if about.spec.epochs > 1 else "samples"
    smaller = (
        f"The dataset is smaller than it was: {about.expected:,} {unit} are in it now, and there "
        f"are results of {counts.expected:,}."
        if counts.expected > about.expected
        else ""
    )
    return section(
        "counts",
        "How far it is",
        stacked("How far it is", parts),
        f'<p class="legend">{legend}</p>',
        paragraph(f"{counts.expected:,} {unit} expected = {added}."),
        paragraph(smaller),
    )


def _named(name: str, said: str, about: About) -> str:
    if name == "missing" and about.running is None:
        return "no result yet (running or not started)"
    return said


def _spreads(gathered: Gathered) -> str:
    plots = (
        histogram("Cost", "US dollars", gathered.costs, words.money),
        histogram("Time", "time from start to end", gathered.seconds, words.duration),
        histogram("Turns", "answers of the model", gathered.turns, words.count),
    )
    note = (
        "For each sample and epoch, the attempt that counts: the newest. Costs are with those of "
        "grading."
    )
    return section("spread", "Cost, time and turns", figures(plots), paragraph(note))


def _failures(gathered: Gathered) -> str:
    rows = (
        (
            *(cell(one.kind), cell(one.code)),
            *(number(words.count(one.final)), number(words.count(one.repeated))),
            Cell(text(one.example) or words.NOTHING, "long"),
            cell(one.sample),
        )
        for one in gathered.causes.all()
    )
    heads = ("Kind", "Code", "#Failed", "#Tried again", "For example", "Sample")
    told = table(heads, rows)
    note = "A failure is never a score of 0. Attempts that were tried again do not count as failed."
    return section(
        "failures",
        "Failures by cause",
        told or paragraph("Nothing failed."),
        paragraph(note if told else ""),
    )


def _limits(summary: Summary) -> str:
    rows = (
        (cell(code), number(words.count(many)), number(words.share(many, summary.counts.done)))
        for code, many in sorted(summary.limits.items(), key=lambda one: (-one[1], one[0]))
    )
    stuck = f"Attempts in which the agent got stuck: {summary.stuck:,}." if summary.stuck else ""
    return section(
        "limits",
        "Limits hit",
        table(("Limit", "#Attempts", "#Of those done"), rows),
        paragraph(stuck),
    )
