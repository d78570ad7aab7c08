"""`perdure note`: a title, tags and state for a conversation."""

from typing import Annotated, Any

import typer

from cli.assignments import pair_of
from cli.output import Format, Output, show_json
from cli.output import note as say
from cli.performing import ConversationId, command_app, perform
from cli.stack import place
from client.client import Client
from client.errors import Invalid

app = command_app()


@app.command()
def note(
    conversation_id: ConversationId,
    title: Annotated[str | None, typer.Option(help="What it is about, in a few words.")] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="In place of those before; repeatable.")
    ] = None,
    state: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="May be repeated.")
    ] = None,
    output: Output = Format.text,
) -> None:
    """Note a title, tags or state for a conversation; the agent is not told."""
    perform(_note(conversation_id, title, tag, state, output), output)


async def _note(
    conversation_id: str,
    title: str | None,
    tags: list[str] | None,
    state: list[str] | None,
    output: Format,
) -> None:
    noted: dict[str, Any] | None = dict(map(pair_of, state)) if state else None
    if title is None and not tags and not noted:
        raise Invalid("There is nothing to note.", "Give --title, --tag or --state.")
    client = await Client.connect((await place()).settings)
    await client.conversation(conversation_id).note(title, tags or None, noted)
    if output is Format.text:
        say("Noted.")
    else:
        show_json({"conversation_id": conversation_id}, output)
