"""`perdure batch compare`: whether batches differ by more than noise."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from cli.commands.batch_report import now
from cli.failures import OK
from cli.output import Format as Printed
from cli.output import note, show
from cli.performing import command_app, perform
from cli.stack import batch_of
from cli.writing import opened
from client.errors import Invalid, NotFound
from evaluation.reduce import epochs_of
from evaluation.report.compared import What, compared
from evaluation.report.comparison import comparison
from evaluation.report.side import Side
from evaluation.report.told import document, lines
from storage.batches import BatchFolder, Kept
from storage.counted import counted

app = command_app()

FIRST = 20
"""Names that are told where one is not there."""


class Shape(StrEnum):
    """What a comparison is printed as."""

    text = "text"
    json = "json"


@dataclass(frozen=True)
class Asked:
    """What is to be compared; None: as the first batch has it."""

    scorer: str | None = None
    metric: str | None = None
    reducer: str | None = None


@app.command("compare")
def command(
    names: Annotated[
        list[str], typer.Argument(metavar="A B...", help="Batches; each is compared with A.")
    ],
    scorer: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose score; A's first by default.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which metric, where it has several.")
    ] = None,
    reducer: Annotated[
        str | None, typer.Option(metavar="NAME", help="How epochs become one; as A by default.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="List all samples that changed.")] = False,
    output: Annotated[
        str | None, typer.Option("--output", metavar="FILE.html", help="Also write a page.")
    ] = None,
    shape: Annotated[
        Shape, typer.Option("--format", metavar="FORMAT", help="text or json.")
    ] = Shape.text,
) -> None:
    """Say whether batches differ by more than noise, and which samples changed.

    Only the store is needed. Samples are paired by their ids. The exit code says only whether they
    could be compared.
    """
    asked = Asked(scorer, metric, reducer)
    printed = Printed.json if shape is Shape.json else Printed.text
    perform(_compare(names, asked, every, output, shape), printed)


async def _compare(
    names: Sequence[str], asked: Asked, every: bool, output: str | None, shape: Shape
) -> int:
    _check(names, output)
    batches = [await _found(name) for name in names]
    what, sides = await _sides(batches, asked)
    first = sides[0]
    others = [
        compared(name, first, side, what.metric)
        for name, side in zip(names[1:], sides[1:], strict=True)
    ]
    notes = list(_differences([kept for _, kept in batches]))
    if shape is Shape.json:
        print(json.dumps(document(names[0], what, others), ensure_ascii=False, indent=2))
    else:
        for line in lines(names[0], what, others, every):
            show(line)
    for one in notes:
        note(one, "yellow")
    if output is not None:
        with opened(output) as file:
            file.writelines(comparison(names[0], what, others, notes, now()))
        note(f"Written to {output}.")
    return OK


def _check(names: Sequence[str], output: str | None) -> None:
    """Raises Invalid."""
    if len(set(names)) < 2 or len(set(names)) < len(names):
        raise Invalid("Name two batches or more, each once: perdure batch compare A B.")
    if output is not None and not output.endswith((".html", ".htm")):
        raise Invalid(
            f"{output!r} does not end in .html: a page is written to it.",
            "--format json prints the numbers.",
        )


async def _found(name: str) -> tuple[BatchFolder, Kept]:
    folder = await batch_of(name)
    kept = await folder.kept()
    if kept is None:
        raise NotFound(f"There is no batch {name!r}.")
    return folder, kept


async def _sides(
    batches: Sequence[tuple[BatchFolder, Kept]], asked: Asked
) -> tuple[What, list[Side]]:
    """Raises Invalid where there is nothing such to compare."""
    spec = batches[0][1].spec
    scorer = asked.scorer or next((one.called for one in spec.scorers), None)
    if scorer is None:
        raise Invalid(f"{spec.name} has no scorer.", "Name one that has scored: --scorer NAME.")
    reducer = asked.reducer or spec.reducers[0]
    _check_epochs(reducer, [kept for _, kept in batches])
    sides = []
    for folder, kept in batches:
        side = Side(scorer, reducer)
        async for result in counted(folder, kept):
            side.add(result)
        if not side.values:
            raise Invalid(*_nothing(kept, scorer, side))
        sides.append(side)
    names = [kept.spec.name for _, kept in batches]
    return What(scorer, _metric(asked, names, sides), reducer), sides


def _check_epochs(reducer: str, batches: Sequence[Kept]) -> None:
    """Raises Invalid."""
    try:
        needed = epochs_of(reducer)
    except ValueError as error:
        raise Invalid(f"The reducer cannot be used: {error}.") from error
    for kept in batches:
        if kept.spec.epochs < needed:
            raise Invalid(
                f"{reducer} needs {needed} epochs, and {kept.spec.name} has {kept.spec.epochs}.",
                "Name another one: --reducer mean.",
            )


def _nothing(kept: Kept, scorer: str, side: Side) -> tuple[str, str]:
    name = kept.spec.name
    if not side.samples:
        return f"No sample of {name} has a result yet.", ""
    there = sorted(side.scorers - {scorer})
    hint = f"There are scores of {', '.join(there[:FIRST])}." if there else "Nothing has scored it."
    return f"{name} has no numbers of the scorer {scorer!r}.", hint


def _metric(asked: Asked, names: Sequence[str], sides: Sequence[Side]) -> str:
    """Raises Invalid."""
    metric = sides[0].metric if asked.metric is None else asked.metric
    assert metric is not None
    for name, side in zip(names, sides, strict=True):
        if metric not in side.values:
            missing = f"metric {metric!r}" if metric else "plain value"
            there = sorted(one or "a plain value" for one in side.values)
            raise Invalid(f"{name} has no {missing}.", f"It has {', '.join(there[:FIRST])}.")
    return metric


def _differences(batches: Sequence[Kept]) -> Iterator[str]:
    """What else differs, and may be the reason for what is found."""
    first = batches[0].spec
    for kept in batches[1:]:
        other = kept.spec
        if other.dataset != first.dataset:
            yield f"{other.name} has another dataset than {first.name}."
        if other.scorers != first.scorers:
            yield f"{other.name} has other scorers than {first.name}, or other settings of them."
        if other.epochs != first.epochs:
            yield f"{other.name} has {other.epochs} epochs, and {first.name} {first.epochs}."
