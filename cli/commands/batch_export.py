"""`perdure batch export`: the conversations of a batch in the formats of others."""

from typing import Annotated

import typer

from cli.chosen import batch_in
from cli.commands.export import TOLD, Name, export_all, format_of
from cli.output import Format as Printed
from cli.performing import command_app, perform
from cli.stack import batch_of
from client.errors import Invalid
from exports.format import Format
from exports.inspect_log import INSPECT

app = command_app()


@app.command("export")
def command(
    batch: Annotated[str, typer.Argument(metavar="NAME", help="The batch's name.")],
    name: Annotated[Name, typer.Option("--format", metavar="NAME", help=f"{TOLD}.")],
    output: Annotated[
        str, typer.Option("--output", metavar="PATH", help="A file or a folder; - is stdout.")
    ] = "-",
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
    perform(_export(batch, format_of(name), output, every), Printed.text)


async def _export(name: str, made: Format, output: str, every: bool) -> int:
    if every and made is INSPECT:
        raise Invalid(
            "An Inspect log has one attempt for each epoch of a sample.",
            "Leave out --all-attempts: the errors of earlier attempts are in it.",
        )
    return await export_all([await batch_in(await batch_of(name), every)], made, output)
