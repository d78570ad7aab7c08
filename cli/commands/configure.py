"""`perdure configure`: the model, the limits and so on of a conversation that goes on."""

from typing import Annotated

import typer

from cli.assignments import fields_of
from cli.output import Format, Output, note, show_json
from cli.performing import ConversationId, command_app, perform
from cli.stack import place
from client.client import Client

app = command_app()


@app.command()
def configure(
    conversation_id: ConversationId,
    changes: Annotated[
        list[str], typer.Argument(metavar="KEY=VALUE...", help="VALUE in JSON, or a bare text.")
    ],
    output: Output = Format.text,
) -> None:
    """Change the model, the limits or the confirmation policy of a conversation.

    For example: model=openai/gpt-4o limits.max_iterations=50 confirmation.policy=always
    'tags=["urgent"]'. A conversation that stopped at a limit goes on by `perdure resume`.
    """
    perform(_configure(conversation_id, changes, output), output)


async def _configure(conversation_id: str, changes: list[str], output: Format) -> None:
    fields = fields_of(changes)
    client = await Client.connect((await place()).settings)
    recorded = await client.conversation(conversation_id).configure(fields)
    if output is Format.text:
        note(f"In force from seq {recorded.seq} on.")
    else:
        show_json({"conversation_id": conversation_id, **recorded.model_dump()}, output)
