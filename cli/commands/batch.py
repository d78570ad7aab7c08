"""`perdure batch`: evaluations of many samples."""

import typer

from cli.failures import USAGE
from cli.lazy import Lazy

COMMANDS = {
    "run": "Run a batch to its end, and show how far it is; again: what is missing.",
    "status": "Say how far a batch is, or all of them.",
    "pause": "Pause a batch, and the conversations that it runs.",
    "resume": "Go on after a pause.",
    "retune": "Change the concurrency or the limits of a batch while it runs.",
    "retry": "Run again what failed, and what is missing.",
    "rescore": "Score again what there is, from the logs, without running an agent.",
    "results": "Tell what came of a batch: scores, errors, cost, and a row for each attempt as "
    "a table.",
    "compare": "Say whether batches differ by more than noise, and which samples changed.",
    "report": "Write a page about a batch: scores, plots, failures, cost and every sample that "
    "went wrong.",
    "export": "Export all conversations of a batch, by sample and epoch.",
}


class Commands(Lazy):
    modules = "cli.commands.batch_"
    told = COMMANDS


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def batch(context: typer.Context) -> None:
    """Run batches of samples, and see what comes of them."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(USAGE)
