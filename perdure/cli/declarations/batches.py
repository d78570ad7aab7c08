"""The `perdure batch` commands."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from perdure.cli.options import (
    USAGE_ERROR,
    Detach,
    ExportFormat,
    ExportPath,
    Format,
    Options,
    OutputOptions,
    argument,
    flag,
    option,
)
from perdure.cli.runner import command, new_group

app = new_group()

BatchName = Annotated[str, typer.Argument(metavar="NAME", help="The batch's name.")]


class ComparisonFormat(StrEnum):
    """The formats of a comparison."""

    text = "text"
    json = "json"


class ResultsFormat(StrEnum):
    """The formats of a batch's results."""

    text = "text"
    json = "json"
    csv = "csv"
    parquet = "parquet"


class BatchOutputOptions(OutputOptions):
    """The options of a command that prints the progress of batches."""

    output: Format = option(
        "-o",
        "--output",
        "--format",
        default=Format.text,
        help="How to print results.",
        metavar="FORMAT",
    )


class BatchOptions(BatchOutputOptions):
    """The options of a command that changes one batch."""

    name: BatchName


@app.callback(invoke_without_command=True)
def show_help(context: typer.Context) -> None:
    """Run batches of samples, and see what comes of them."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(USAGE_ERROR)


@command(app, "batch.start:run")
class Run(BatchOutputOptions):
    """Run a batch to its end, and show how far it is; again: what is missing.

    FILE is a .toml or .py file, or module:attribute. What it names is imported from beside it, by
    workers too, which have to find it: one that was started elsewhere needs it as its PERDURE_CODE.
    It runs where `perdure run` would run. ^C leaves the batch, which goes on; the same command
    comes back to it. The exit code is 0 where everything has a score, and 1 where something failed
    or is missing.
    """

    file: str = argument(metavar="FILE", help="A .toml or .py file, or module:attribute.")
    models: list[str] | None = option(
        "--model", metavar="NAME", help="Of the agent; may be repeated."
    )
    concurrency: int | None = option(help="Samples at a time.", min=1, metavar="N")
    limit: int | None = option(help="Only the first samples.", min=1, metavar="N")
    ids: list[str] | None = option("--id", metavar="ID", help="A sample; may be repeated.")
    epochs: int | None = option(help="How often each sample is run.", min=1, metavar="N")
    name: str | None = option(help="Another name for the batch.")
    retry_failed: bool = flag("--retry-failed", help="Also run again what has failed.")
    rescore: bool = flag("--rescore", help="Score again what there is, and run nothing.")
    detach: Detach = False

    @property
    def mode(self) -> Literal["missing", "failed", "rescore"]:
        """Select what is run. Raises typer.BadParameter for flags that contradict each other."""
        if not self.rescore:
            return "failed" if self.retry_failed else "missing"
        if self.retry_failed:
            raise typer.BadParameter(
                "--rescore runs nothing, so it does not go with --retry-failed."
            )
        return "rescore"


@command(app, "batch.control:status")
class Status(BatchOutputOptions):
    """Say how far a batch is, or all of them.

    Its workflow is asked where it runs; else its results in the store are counted.
    """

    name: str | None = argument(
        default=None, metavar="[NAME]", help="The batch's name; else all of them."
    )


@command(app, "batch.control:pause")
class Pause(BatchOptions):
    """Pause a batch, and the conversations that it runs.

    Each of them pauses between two steps.
    """


@command(app, "batch.control:resume")
class Resume(BatchOptions):
    """Go on after a pause.

    A batch that paused at a limit goes on by `perdure batch retune`; one that has ended, by
    `perdure batch retry`.
    """


@command(app, "batch.control:retune")
class Retune(BatchOptions):
    """Change the concurrency or the limits of a batch while it runs.

    A batch that paused at a limit goes on where the limit is raised.
    """

    concurrency: int | None = option(help="Samples at a time.", metavar="N", min=1, max=10_000)
    cost: float | None = option(help="US dollars for the whole batch.", metavar="$")
    tokens: int | None = option(help="Tokens both ways, for the whole batch.", metavar="N", min=1)
    time: float | None = option(help="Seconds that it may be at work.", metavar="S")


@command(app, "batch.start:retry")
class Retry(BatchOptions):
    """Run again what failed, and what is missing.

    The batch is run as it was run last: its file is not needed, only what that imports, which is
    looked for in this folder too. The exit code is as that of `perdure batch run`.
    """

    detach: Detach = False


@command(app, "batch.start:rescore")
class Rescore(BatchOptions):
    """Score again what there is, from the logs, without running an agent.

    A scorer that looks into the workspace needs the files that its agent left, where they were
    kept. The exit code is as that of `perdure batch run`.
    """

    file: str | None = argument(
        default=None, metavar="[FILE]", help="With other scorers or targets; else as it was run."
    )
    detach: Detach = False


@command(app, "batch.results:results")
class Results(Options):
    """Tell what came of a batch: scores, errors, cost, and a row for each attempt as a table.

    Only the store is needed. In a table, epochs and attempts count from 0, and texts stand as they
    are: a spreadsheet takes one that begins with = for a formula. The exit code is 1 where
    something failed or has no result yet.
    """

    name: BatchName
    format: ResultsFormat = option(
        "--format",
        default=ResultsFormat.text,
        metavar="FORMAT",
        help="text or json: in short; csv or parquet: a table.",
    )
    path: str = option("--output", default="-", metavar="PATH", help="A file; - is stdout.")
    failed: bool = flag("--failed", help="List what failed, and nothing else of the attempts.")


@command(app, "batch.compare:compare")
class Compare(Options):
    """Say whether batches differ by more than noise, and which samples changed.

    Only the store is needed. Samples are paired by their ids. The exit code says only whether they
    could be compared.
    """

    names: list[str] = argument(metavar="A B...", help="Batches; each is compared with A.")
    scorer: str | None = option(metavar="NAME", help="Whose score; A's first by default.")
    metric: str | None = option(metavar="NAME", help="Which metric, where it has several.")
    reducer: str | None = option(metavar="NAME", help="How epochs become one; as A by default.")
    every: bool = flag("--all", help="List all samples that changed.")
    page: str | None = option("--output", metavar="FILE.html", help="Also write a page.")
    format: ComparisonFormat = option(
        "--format", default=ComparisonFormat.text, metavar="FORMAT", help="text or json."
    )


@command(app, "batch.report:report")
class Report(Options):
    """Write a page about a batch: scores, plots, failures, cost and every sample that went wrong.

    Only the store is needed: what runs at the moment counts as missing. The page is one file that
    asks no other host, and shows at most 2,000 samples, those that went wrong first.
    """

    name: BatchName
    path: str | None = option("--output", metavar="FILE", help="NAME.html by default; - is stdout.")
    ui: str | None = option(
        "--ui", metavar="URL", help="Temporal's page, for links to the workflows."
    )
    namespace: str | None = option(
        metavar="NAME", help="Temporal's, for these links; as configured by default."
    )
    conversations: Path | None = option(
        "--conversations",
        metavar="FOLDER",
        help="Link to the pages that `perdure batch export NAME --format html` put there.",
    )


@command(app, "commands.export:export_batch")
class Export(Options):
    """Export all conversations of a batch, by sample and epoch.

    Only the store is needed. Inspect gets one log with all samples and their scores, in which an
    attempt that was made again is an error that was retried. A file gets a line for each
    conversation, where the format is JSON, and a folder a file each. What cannot be read is named,
    and the rest is exported: then the exit code is 1.
    """

    name: BatchName
    format: ExportFormat
    path: ExportPath = "-"
    every: bool = flag("--all-attempts", help="Also attempts that were made again.")
