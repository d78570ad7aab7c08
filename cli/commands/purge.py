"""`perdure purge`: a conversation deleted for good."""

from typing import Annotated

import typer

from cli.output import Format, Output, note, show_json
from cli.performing import ConversationId, command_app, perform
from cli.stack import place
from client.client import Client
from client.errors import Conflict
from client.purge import Purged, doomed
from client.purge import purge as delete

app = command_app()


@app.command()
def purge(
    conversation_id: ConversationId,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    with_forks: Annotated[
        bool, typer.Option("--with-forks", help="And all conversations that begin with its events.")
    ] = False,
    output: Output = Format.text,
) -> None:
    """Delete a conversation for good: its log, and its histories in Temporal.

    Its workflow must have ended. The files of its workspace stay.
    """
    perform(_purge(conversation_id, yes, with_forks, output), output)


async def _purge(conversation_id: str, yes: bool, with_forks: bool, output: Format) -> None:
    client = await Client.connect((await place()).settings)
    names = await doomed(client, conversation_id, with_forks)
    if not yes:
        _confirm(names)
    purged = await delete(client, names)
    if output is Format.text:
        _tell(purged)
    else:
        fields = {"objects": purged.objects, "histories": purged.histories, "kept": purged.kept}
        show_json({"purged": list(purged.objects), **fields}, output)


def _confirm(names: list[str]) -> None:
    """Raises Conflict unless a person says yes."""
    for name in names:
        note(name, "bold")
    try:
        sure = typer.confirm("Delete this for good?", err=True)
    except typer.Abort:  # nobody is there to be asked
        sure = False
    if not sure:
        raise Conflict("Nothing was deleted.", "Say yes, or give --yes.")


def _tell(purged: Purged) -> None:
    for name, count in purged.objects.items():
        note(f"{name}: {count} objects deleted")
    note(f"{purged.histories} histories in Temporal deleted")
    if purged.kept is not None:
        note(f"Temporal keeps others until its retention time is over: {purged.kept}", "yellow")
