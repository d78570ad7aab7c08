"""Pages about batches: `perdure batch report` about one, `perdure batch compare` about several."""

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, urlsplit

from perdure.cli.declarations.batches import Compare, Report
from perdure.cli.environment import open_batch
from perdure.cli.options import Format
from perdure.cli.output import note, open_output, show, show_json
from perdure.errors import Invalid
from perdure.evaluation.reducers import required_epochs
from perdure.exports.report.batch import page
from perdure.exports.report.batch_comparison import Metric, ScoresBySample, compare_batches
from perdure.exports.report.collect import BatchDescription, Collected
from perdure.exports.report.comparison import comparison_json, comparison_lines, comparison_page
from perdure.operations.error_reports import EXIT_OK
from perdure.storage.batches import BatchRecord, read_current_results
from perdure.storage.readable_batch import ReadableBatch
from perdure.temporal.names import conversation_workflow_id


async def report(options: Report) -> int:
    path = options.path or f"{options.name}.html"
    if options.ui is not None:
        _check_ui_address(options.ui)
    folder, record = await open_batch(options.name)
    about = BatchDescription(
        spec=record.spec,
        expected=record.expected_attempts,
        ui=options.ui,
        namespace=options.namespace or os.environ.get("TEMPORAL_NAMESPACE") or "default",
        conversations=_relative_link(path, options.conversations),
        made=format_now(),
        workflow_prefix=conversation_workflow_id(folder.user_id, ""),
    )
    results = Collected(record.spec)
    async for result in read_current_results(folder, record):
        results.add(result)
    for chunk in range(record.chunks):
        results.add_questions(await folder.read_chunk(record.samples, chunk))
    with open_output(path) as file:
        file.writelines(page(about, results))
    if path != "-":
        note(f"Written to {path}.")
    return EXIT_OK


def _check_ui_address(ui: str) -> None:
    """Raises Invalid unless `ui` is an http address."""
    try:
        parts = urlsplit(ui)
    except ValueError as error:
        raise Invalid(f"{ui!r} is no address: {error}.") from error
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise Invalid(
            f"{ui!r} is no address of Temporal's page.", "Write one such as http://localhost:8233."
        )


def _relative_link(output: str, conversations: Path | None) -> str | None:
    """Make the link from the page to the folder. Raises Invalid where there is no such folder."""
    if conversations is None:
        return None
    if not conversations.is_dir():
        raise Invalid(
            f"There is no folder {conversations}.",
            "Make it with `perdure batch export NAME --format html --output FOLDER`.",
        )
    page = Path(output if output != "-" else "page").resolve().parent
    link = Path(os.path.relpath(conversations.resolve(), page)).as_posix()
    # Without ./ a browser takes a folder such as `data:x` for a URL with a scheme.
    return quote(link if link.startswith(".") else f"./{link}", safe="/")


def format_now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


MAX_LISTED_NAMES = 20
"""Names listed in the error that another does not exist."""


async def compare(options: Compare) -> int:
    names, page = options.names, options.page
    _check_arguments(names, page)
    batches = [await open_batch(name) for name in names]
    subject, sides = await _load_sides(batches, options)
    first = sides[0]
    others = [
        compare_batches(name, first, side, subject.metric)
        for name, side in zip(names[1:], sides[1:], strict=True)
    ]
    notes = list(_list_differences([record for _, record in batches]))
    if options.format == "json":
        show_json(comparison_json(names[0], subject, others), Format.json)
    else:
        for line in comparison_lines(names[0], subject, others, options.every):
            show(line)
    for difference in notes:
        note(difference, "yellow")
    if page is not None:
        with open_output(page) as file:
            file.writelines(comparison_page(names[0], subject, others, notes, format_now()))
        note(f"Written to {page}.")
    return EXIT_OK


def _check_arguments(names: Sequence[str], output: str | None) -> None:
    """Raises Invalid for fewer than two batches, or an output that is not HTML."""
    if len(set(names)) < 2 or len(set(names)) < len(names):
        raise Invalid("Name two batches or more, each once: perdure batch compare A B.")
    if output is not None and not output.endswith((".html", ".htm")):
        raise Invalid(
            f"{output!r} does not end in .html: a page is written to it.",
            "--format json prints the numbers.",
        )


async def _load_sides(
    batches: Sequence[tuple[ReadableBatch, BatchRecord]], options: Compare
) -> tuple[Metric, list[ScoresBySample]]:
    """Collect the scores of each batch. Raises Invalid where one has none."""
    spec = batches[0][1].spec
    scorer = options.scorer or next((scorer.score_name for scorer in spec.scorers), None)
    if scorer is None:
        raise Invalid(f"{spec.name} has no scorer.", "Name one that has scored: --scorer NAME.")
    reducer = options.reducer or spec.reducers[0]
    _check_epochs(reducer, [record for _, record in batches])
    sides = []
    for folder, record in batches:
        side = ScoresBySample(scorer, reducer)
        async for result in read_current_results(folder, record):
            side.add(result)
        if not side.values:
            raise Invalid(*_explain_no_values(record.spec.name, scorer, side))
        sides.append(side)
    names = [record.spec.name for _, record in batches]
    return Metric(scorer, _select_metric(options, names, sides), reducer), sides


def _check_epochs(reducer: str, batches: Sequence[BatchRecord]) -> None:
    """Raises Invalid where the reducer is unknown, or needs more epochs than a batch has."""
    try:
        needed = required_epochs(reducer)
    except ValueError as error:
        raise Invalid(f"The reducer cannot be used: {error}.") from error
    for spec in (record.spec for record in batches):
        if spec.epochs < needed:
            raise Invalid(
                f"{reducer} needs {needed} epochs, and {spec.name} has {spec.epochs}.",
                "Name another one: --reducer mean.",
            )


def _explain_no_values(name: str, scorer: str, side: ScoresBySample) -> tuple[str, str]:
    if not side.samples:
        return f"No sample of {name} has a result yet.", ""
    scorers = ", ".join(sorted(side.scorers - {scorer})[:MAX_LISTED_NAMES])
    hint = f"There are scores of {scorers}." if scorers else "Nothing has scored it."
    return f"{name} has no numbers of the scorer {scorer!r}.", hint


def _select_metric(options: Compare, names: Sequence[str], sides: Sequence[ScoresBySample]) -> str:
    """Choose the metric. Raises Invalid where a batch lacks it."""
    metric = sides[0].metric if options.metric is None else options.metric
    assert metric is not None
    for name, side in zip(names, sides, strict=True):
        if metric not in side.values:
            missing = f"metric {metric!r}" if metric else "plain value"
            metrics = sorted(name or "a plain value" for name in side.values)[:MAX_LISTED_NAMES]
            raise Invalid(f"{name} has no {missing}.", f"It has {', '.join(metrics)}.")
    return metric


def _list_differences(batches: Sequence[BatchRecord]) -> Iterator[str]:
    """Yield other differences between the batches, which may explain that of the scores."""
    first, *others = (record.spec for record in batches)
    for other in others:
        if other.dataset != first.dataset:
            yield f"{other.name} has another dataset than {first.name}."
        if other.scorers != first.scorers:
            yield f"{other.name} has other scorers than {first.name}, or other settings of them."
        if other.epochs != first.epochs:
            yield f"{other.name} has {other.epochs} epochs, and {first.name} {first.epochs}."
