"""The `perdure batch` commands."""

from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True)
class BatchOutputOptions(OutputOptions):
    """The options of a command that prints the progress of batches."""

    output: Annotated[
        Format,
        typer.Option("-o", "--output", "--format", help="How to print results.", metavar="FORMAT"),
    ] = Format.text


@dataclass(frozen=True, kw_only=True)
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

    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A .toml or .py file, or module:attribute.")
    ]
    models: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="NAME", help="Of the agent; may be repeated."),
    ] = None
    concurrency: Annotated[
        int | None, typer.Option(help="Samples at a time.", min=1, metavar="N")
    ] = None
    limit: Annotated[
        int | None, typer.Option(help="Only the first samples.", min=1, metavar="N")
    ] = None
    ids: Annotated[
        list[str] | None, typer.Option("--id", metavar="ID", help="A sample; may be repeated.")
    ] = None
    epochs: Annotated[
        int | None, typer.Option(help="How often each sample is run.", min=1, metavar="N")
    ] = None
    name: Annotated[str | None, typer.Option(help="Another name for the batch.")] = None
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Also run again what has failed.")
    ] = False
    rescore: Annotated[
        bool, typer.Option("--rescore", help="Score again what there is, and run nothing.")
    ] = False
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

    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The batch's name; else all of them.")
    ] = None


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

    concurrency: Annotated[
        int | None, typer.Option(help="Samples at a time.", metavar="N", min=1, max=10_000)
    ] = None
    cost: Annotated[
        float | None, typer.Option(help="US dollars for the whole batch.", metavar="$")
    ] = None
    tokens: Annotated[
        int | None, typer.Option(help="Tokens both ways, for the whole batch.", metavar="N", min=1)
    ] = None
    time: Annotated[
        float | None, typer.Option(help="Seconds that it may be at work.", metavar="S")
    ] = None


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

    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="With other scorers or targets; else as it was run."),
    ] = None
    detach: Detach = False


@command(app, "batch.results:results")
class Results(Options):
    """Tell what came of a batch: scores, errors, cost, and a row for each attempt as a table.

    Only the store is needed. In a table, epochs and attempts count from 0, and texts stand as they
    are: a spreadsheet takes one that begins with = for a formula. The exit code is 1 where
    something failed or has no result yet.
    """

    name: BatchName
    format: Annotated[
        ResultsFormat,
        typer.Option(
            "--format", metavar="FORMAT", help="text or json: in short; csv or parquet: a table."
        ),
    ] = ResultsFormat.text
    path: Annotated[str, typer.Option("--output", metavar="PATH", help="A file; - is stdout.")] = (
        "-"
    )
    failed: Annotated[
        bool, typer.Option("--failed", help="List what failed, and nothing else of the attempts.")
    ] = False

    @property
    def error_format(self) -> Format:
        return Format.json if self.format is ResultsFormat.json else Format.text


@command(app, "batch.compare:compare")
class Compare(Options):
    """Say whether batches differ by more than noise, and which samples changed.

    Only the store is needed. Samples are paired by their ids. The exit code says only whether they
    could be compared.
    """

    names: Annotated[
        list[str], typer.Argument(metavar="A B...", help="Batches; each is compared with A.")
    ]
    scorer: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose score; A's first by default.")
    ] = None
    metric: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which metric, where it has several.")
    ] = None
    reducer: Annotated[
        str | None, typer.Option(metavar="NAME", help="How epochs become one; as A by default.")
    ] = None
    every: Annotated[bool, typer.Option("--all", help="List all samples that changed.")] = False
    page: Annotated[
        str | None, typer.Option("--output", metavar="FILE.html", help="Also write a page.")
    ] = None
    format: Annotated[
        ComparisonFormat, typer.Option("--format", metavar="FORMAT", help="text or json.")
    ] = ComparisonFormat.text

    @property
    def error_format(self) -> Format:
        return Format(self.format)


@command(app, "batch.report:report")
class Report(Options):
    """Write a page about a batch: scores, plots, failures, cost and every sample that went wrong.

    Only the store is needed: what runs at the moment counts as missing. The page is one file that
    asks no other host, and shows at most 2,000 samples, those that went wrong first.
    """

    name: BatchName
    path: Annotated[
        str | None,
        typer.Option("--output", metavar="FILE", help="NAME.html by default; - is stdout."),
    ] = None
    ui: Annotated[
        str | None,
        typer.Option("--ui", metavar="URL", help="Temporal's page, for links to the workflows."),
    ] = None
    namespace: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Temporal's, for these links; as configured by default."),
    ] = None
    conversations: Annotated[
        Path | None,
        typer.Option(
            "--conversations",
            metavar="FOLDER",
            help="Link to the pages that `perdure batch export NAME --format html` put there.",
        ),
    ] = None


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
    every: Annotated[
        bool,
        typer.Option("--all-attempts", help="Also attempts that were made again."),
    ] = False
