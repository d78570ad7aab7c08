"""The `perdure batch` commands."""

from pathlib import Path
from typing import Any, Literal

import typer

from perdure.cli.options import (
    USAGE_ERROR,
    AgentFieldOptions,
    Detach,
    ExportOptions,
    Format,
    Options,
    OutputOptions,
    argument,
    as_ids,
    completer,
    flag,
    option,
)
from perdure.cli.runner import command, new_group

app = new_group()


def batch_argument(metavar: str, help: str = "The batch's name, or how it alone begins.") -> Any:
    return as_ids(argument(metavar, help, autocompletion=completer("complete_batches")), "batch")


class BatchOutputOptions(OutputOptions):
    """The options of a command that prints the progress of batches."""

    output: Format = option(
        "How to print results.", "-o", "--output", "--format", default=Format.text, metavar="FORMAT"
    )


class BatchOptions(BatchOutputOptions):
    """The options of a command that changes one batch."""

    name: str = batch_argument("NAME")


@app.callback(invoke_without_command=True)
def show_help(context: typer.Context) -> None:
    """Run batches of samples, and see what comes of them."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(USAGE_ERROR)


@command(app, "batch.start:run")
class Run(AgentFieldOptions, BatchOutputOptions):
    """Run a batch to its end, and show how far it is; again: what is missing.

    FILE is a .toml or .py file, or module:attribute. What it names is imported from beside it, by
    workers too, which have to find it: one that was started elsewhere needs it as its PERDURE_CODE.
    It runs where `perdure run` would run. ^C leaves the batch, which goes on; the same command
    comes back to it. The exit code is 0 where everything has a score, and 1 where something failed
    or is missing.
    """

    file: str = argument("FILE", "A .toml or .py file, or module:attribute.")
    models: list[str] | None = option("Of the agent; may be repeated.", "--model", metavar="NAME")
    concurrency: int | None = option("Samples at a time.", min=1, metavar="N")
    limit: int | None = option("Only the first samples.", min=1, metavar="N")
    ids: list[str] | None = option(
        "A sample; may be repeated.", "--sample-id", "--id", metavar="ID"
    )
    epochs: int | None = option("How often each sample is run.", min=1, metavar="N")
    arguments: list[str] | None = option(
        "For the function that makes the batch, or else its dataset's; may be repeated.",
        *("-T", "--task-arg"),
        metavar="KEY=VALUE",
    )
    model_fields: list[str] | None = option(
        "A field of the model, such as api_base; may be repeated.",
        *("-M", "--model-arg"),
        metavar="KEY=VALUE",
    )
    name: str | None = option("Another name for the batch.")
    retry_failed: bool = flag("Also run again what has failed.", "--retry-failed")
    rescore: bool = flag("Score again what there is, and run nothing.", "--rescore")
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

    name: str | None = batch_argument("[NAME]", "The batch's name; else all of them.")


@command(app, "commands.watch_sample:watch")
class Watch(BatchOptions):
    """Show how far a batch is until it ends, or the conversation of one sample as it is written.

    The newest attempt at the sample is shown, up to the end of its agent's turn. For one that has
    ended only the store is needed. ^C leaves all as it is.
    """

    sample: str | None = argument("[SAMPLE]", "The id of a sample; else the batch itself.")
    epoch: int = option("Which epoch, counted from 0.", default=0, min=0, metavar="N")


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

    concurrency: int | None = option("Samples at a time.", metavar="N", min=1, max=10_000)
    cost: float | None = option("US dollars for the whole batch.", metavar="$")
    tokens: int | None = option("Tokens both ways, for the whole batch.", metavar="N", min=1)
    time: float | None = option("Seconds that it may be at work.", metavar="S")


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

    file: str | None = argument("[FILE]", "With other scorers or targets; else as it was run.")
    detach: Detach = False


@command(app, "batch.results:results")
class Results(Options):
    """Tell what came of a batch: scores, errors, cost, and a row for each attempt as a table.

    Only the store is needed. In a table, epochs and attempts count from 0, and texts stand as they
    are: a spreadsheet takes one that begins with = for a formula. The exit code is 1 where
    something failed or has no result yet.
    """

    name: str = batch_argument("NAME")
    format: Literal["text", "json", "csv", "parquet"] = option(
        "text or json: in short; csv or parquet: a table.",
        "--format",
        default="text",
        metavar="FORMAT",
    )
    path: str = option("A file; - is stdout.", "--output", default="-", metavar="PATH")
    failed: bool = flag("List what failed, and nothing else of the attempts.", "--failed")


@command(app, "batch.report:compare")
class Compare(Options):
    """Say whether batches differ by more than noise, and which samples changed.

    Only the store is needed. Samples are paired by their ids. The exit code says only whether they
    could be compared.
    """

    names: list[str] = batch_argument("A B...", "Batches; each is compared with A.")
    scorer: str | None = option("Whose score; A's first by default.", metavar="NAME")
    metric: str | None = option("Which metric, where it has several.", metavar="NAME")
    reducer: str | None = option("How epochs become one; as A by default.", metavar="NAME")
    every: bool = flag("List all samples that changed.", "--all")
    page: str | None = option("Also write a page.", "--output", metavar="FILE.html")
    format: Literal["text", "json"] = option(
        "text or json.", "--format", default="text", metavar="FORMAT"
    )


@command(app, "batch.report:report")
class Report(Options):
    """Write a page about a batch: scores, plots, failures, cost and every sample that went wrong.

    Only the store is needed: what runs at the moment counts as missing. The page is one file that
    asks no other host, and shows at most 2,000 samples, those that went wrong first.
    """

    name: str = batch_argument("NAME")
    path: str | None = option("NAME.html by default; - is stdout.", "--output", metavar="FILE")
    ui: str | None = option("Temporal's page, for links to the workflows.", "--ui", metavar="URL")
    namespace: str | None = option(
        "Temporal's, for these links; as configured by default.", metavar="NAME"
    )
    conversations: Path | None = option(
        "Link to the pages that `perdure batch export NAME --format html` put there.",
        "--conversations",
        metavar="FOLDER",
    )


@command(app, "commands.export:export_batch")
class Export(ExportOptions):
    """Export all conversations of a batch, by sample and epoch.

    Only the store is needed. Inspect gets one log with all samples and their scores, in which an
    attempt that was made again is an error that was retried. A file gets a line for each
    conversation, where the format is JSON, and a folder a file each. What cannot be read is named,
    and the rest is exported: then the exit code is 1.
    """

    name: str = batch_argument("NAME")
    every: bool = flag("Also attempts that were made again.", "--all-attempts")
