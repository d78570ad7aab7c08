"""The `perdure batch` commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perdure.cli import batch
from perdure.cli.options import (
    USAGE_ERROR,
    BatchName,
    BatchOutput,
    ComparisonFormat,
    Detach,
    ExportFormat,
    ExportPath,
    Format,
    ResultsFormat,
)
from perdure.cli.runner import new_group, run_command

app = new_group()


@app.callback(invoke_without_command=True)
def show_help(context: typer.Context) -> None:
    """Run batches of samples, and see what comes of them."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(USAGE_ERROR)


@app.command()
def run(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A .toml or .py file, or module:attribute.")
    ],
    model: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="NAME", help="Of the agent; may be repeated."),
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(help="Samples at a time.", min=1, metavar="N")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(help="Only the first samples.", min=1, metavar="N")
    ] = None,
    id: Annotated[
        list[str] | None, typer.Option("--id", metavar="ID", help="A sample; may be repeated.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="How often each sample is run.", min=1, metavar="N")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Another name for the batch.")] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Also run again what has failed.")
    ] = False,
    rescore: Annotated[
        bool, typer.Option("--rescore", help="Score again what there is, and run nothing.")
    ] = False,
    detach: Detach = False,
    output: BatchOutput = Format.text,
) -> None:
    """Run a batch to its end, and show how far it is; again: what is missing.

    FILE is a .toml or .py file, or module:attribute. What it names is imported from beside it, by
    workers too, which have to find it: one that was started elsewhere needs it as its PERDURE_CODE.
    It runs where `perdure run` would run. ^C leaves the batch, which goes on; the same command
    comes back to it. The exit code is 0 where everything has a score, and 1 where something failed
    or is missing.
    """
    mode = select_mode(retry_failed, rescore)
    changes = {
        "name": name,
        "models": model,
        "concurrency": concurrency,
        "limit": limit,
        "ids": id,
        "epochs": epochs,
    }
    run_command(batch.start.run_file(file, changes, mode, detach, output), output)


@app.command()
def status(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The batch's name; else all of them.")
    ] = None,
    output: BatchOutput = Format.text,
) -> None:
    """Say how far a batch is, or all of them.

    Its workflow is asked where it runs; else its results in the store are counted.
    """
    run_command(batch.status.execute(name, output), output)


@app.command()
def pause(name: BatchName, output: BatchOutput = Format.text) -> None:
    """Pause a batch, and the conversations that it runs.

    Each of them pauses between two steps.
    """
    confirmation = f"A pause is asked for. `perdure batch resume {name}` goes on."
    run_command(batch.control.execute(name, "pause", confirmation, output), output)


@app.command()
def resume(name: BatchName, output: BatchOutput = Format.text) -> None:
    """Go on after a pause.

    A batch that paused at a limit goes on by `perdure batch retune`; one that has ended, by
    `perdure batch retry`.
    """
    run_command(batch.control.execute(name, "resume", "It goes on.", output), output)


@app.command()
def retune(
    name: BatchName,
    concurrency: Annotated[
        int | None, typer.Option(help="Samples at a time.", metavar="N", min=1, max=10_000)
    ] = None,
    cost: Annotated[
        float | None, typer.Option(help="US dollars for the whole batch.", metavar="$")
    ] = None,
    tokens: Annotated[
        int | None, typer.Option(help="Tokens both ways, for the whole batch.", metavar="N", min=1)
    ] = None,
    time: Annotated[
        float | None, typer.Option(help="Seconds that it may be at work.", metavar="S")
    ] = None,
    output: BatchOutput = Format.text,
) -> None:
    """Change the concurrency or the limits of a batch while it runs.

    A batch that paused at a limit goes on where the limit is raised.
    """
    changes = {"concurrency": concurrency, "cost": cost, "tokens": tokens, "time": time}
    run_command(batch.retune.execute(name, changes, output), output)


@app.command()
def retry(name: BatchName, detach: Detach = False, output: BatchOutput = Format.text) -> None:
    """Run again what failed, and what is missing.

    The batch is run as it was run last: its file is not needed, only what that imports, which is
    looked for in this folder too. The exit code is as that of `perdure batch run`.
    """
    run_command(batch.start.run_again(name, "failed", detach, output), output)


@app.command()
def rescore(
    name: BatchName,
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="With other scorers or targets; else as it was run."),
    ] = None,
    detach: Detach = False,
    output: BatchOutput = Format.text,
) -> None:
    """Score again what there is, from the logs, without running an agent.

    A scorer that looks into the workspace needs the files that its agent left, where they were
    kept. The exit code is as that of `perdure batch run`.
    """
    run_command(batch.start.rescore(name, file, detach, output), output)


@app.command()
def results(
    name: BatchName,
    format: Annotated[
        ResultsFormat,
        typer.Option(
            "--format", metavar="FORMAT", help="text or json: in short; csv or parquet: a table."
        ),
    ] = ResultsFormat.text,
    output: Annotated[
        str, typer.Option("--output", metavar="PATH", help="A file; - is stdout.")
    ] = "-",
    failed: Annotated[
        bool, typer.Option("--failed", help="List what failed, and nothing else of the attempts.")
    ] = False,
) -> None:
    """Tell what came of a batch: scores, errors, cost, and a row for each attempt as a table.

    Only the store is needed. In a table, epochs and attempts count from 0, and texts stand as they
    are: a spreadsheet takes one that begins with = for a formula. The exit code is 1 where
    something failed or has no result yet.
    """
    error_format = Format.json if format is ResultsFormat.json else Format.text
    run_command(batch.results.execute(name, format, output, failed), error_format)


@app.command()
def compare(
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
    format: Annotated[
        ComparisonFormat, typer.Option("--format", metavar="FORMAT", help="text or json.")
    ] = ComparisonFormat.text,
) -> None:
    """Say whether batches differ by more than noise, and which samples changed.

    Only the store is needed. Samples are paired by their ids. The exit code says only whether they
    could be compared.
    """
    options = batch.compare.ComparisonOptions(scorer, metric, reducer)
    error_format = Format.json if format is ComparisonFormat.json else Format.text
    run_command(batch.compare.execute(names, options, every, output, format), error_format)


@app.command()
def report(
    name: BatchName,
    output: Annotated[
        str | None,
        typer.Option("--output", metavar="FILE", help="NAME.html by default; - is stdout."),
    ] = None,
    ui: Annotated[
        str | None,
        typer.Option("--ui", metavar="URL", help="Temporal's page, for links to the workflows."),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Temporal's, for these links; as configured by default."),
    ] = None,
    conversations: Annotated[
        Path | None,
        typer.Option(
            "--conversations",
            metavar="FOLDER",
            help="Link to the pages that `perdure batch export NAME --format html` put there.",
        ),
    ] = None,
) -> None:
    """Write a page about a batch: scores, plots, failures, cost and every sample that went wrong.

    Only the store is needed: what runs at the moment counts as missing. The page is one file that
    asks no other host, and shows at most 2,000 samples, those that went wrong first.
    """
    links = batch.report.Links(ui, namespace, conversations)
    run_command(batch.report.execute(name, output or f"{name}.html", links), Format.text)


@app.command()
def export(
    name: BatchName,
    format: ExportFormat,
    output: ExportPath = "-",
    every: Annotated[
        bool,
        typer.Option("--all-attempts", help="Also attempts that were made again."),
    ] = False,
) -> None:
    """Export all conversations of a batch, by sample and epoch.

    Only the store is needed. Inspect gets one log with all samples and their scores, in which an
    attempt that was made again is an error that was retried. A file gets a line for each
    conversation, where the format is JSON, and a folder a file each. What cannot be read is named,
    and the rest is exported: then the exit code is 1.
    """
    run_command(batch.export.execute(name, format, output, every), Format.text)


def select_mode(retry_failed: bool, rescore: bool) -> batch.start.BatchMode:
    if retry_failed and rescore:
        raise typer.BadParameter("--rescore runs nothing, so it does not go with --retry-failed.")
    return "failed" if retry_failed else "rescore" if rescore else "missing"
