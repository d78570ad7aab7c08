"""`perdure batch run`: a batch from its file to its scores."""

from typing import Annotated, Any

import typer

from cli import batch_starting as starting
from cli.batch_given import BatchFile, BatchOutput, Detach, given
from cli.output import Format
from cli.performing import command_app, perform
from evaluation.running import Mode

app = command_app()

Models = Annotated[
    list[str] | None, typer.Option("--model", metavar="NAME", help="Of the agent; may be repeated.")
]
Ids = Annotated[
    list[str] | None, typer.Option("--id", metavar="ID", help="A sample; may be repeated.")
]


@app.command()
def run(
    file: BatchFile,
    model: Models = None,
    concurrency: Annotated[
        int | None, typer.Option(help="Samples at a time.", min=1, metavar="N")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(help="Only the first samples.", min=1, metavar="N")
    ] = None,
    id: Ids = None,
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
    workers too, which have to find it: one that was started elsewhere needs it in its PYTHONPATH.
    It runs where `perdure run` would run. ^C leaves the batch, which goes on; the same command
    comes back to it. The exit code is 0 where everything has a score, and 1 where something failed
    or is missing.
    """
    changes = {
        "name": name,
        "models": model,
        "concurrency": concurrency,
        "limit": limit,
        "ids": id,
        "epochs": epochs,
    }
    perform(_run(file, changes, mode_of(retry_failed, rescore), detach, output), output)


def mode_of(retry_failed: bool, rescore: bool) -> Mode:
    if retry_failed and rescore:
        raise typer.BadParameter("--rescore runs nothing, so it does not go with --retry-failed.")
    return "failed" if retry_failed else "rescore" if rescore else "missing"


async def _run(file: str, changes: dict[str, Any], mode: Mode, detach: bool, output: Format) -> int:
    asked = given(file, {name: value for name, value in changes.items() if value})
    return await starting.run(asked, mode, detach, output)
