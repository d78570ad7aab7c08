"""How every command is carried out, and how it exits."""

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any

import typer

from cli.failures import FORESEEN, failure_of
from cli.output import Format, report

ConversationId = Annotated[str, typer.Argument(metavar="ID", help="The conversation's id.")]


def command_app() -> typer.Typer:
    """For the module of a command."""
    return typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def perform(work: Coroutine[Any, Any, int | None], output: Format) -> None:
    """Do the work and exit with its code; what was foreseen is told in a sentence."""
    try:
        code = asyncio.run(work)
    except FORESEEN as error:
        failure = failure_of(error)
        report(failure, output)
        code = failure.exit_code
    raise typer.Exit(code or 0)
