"""`perdure batch`: evaluations of many samples."""

import importlib
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from cli.failures import USAGE

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


class Commands(TyperGroup):
    """Every command by its name; its module is imported when it is used."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        return get_command(importlib.import_module(f"cli.commands.batch_{cmd_name}").app)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


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
