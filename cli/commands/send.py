"""`perdure send`: a message for a conversation."""

from typing import Annotated

import typer

from cli.failures import OK
from cli.following import conclude, follow
from cli.message import message_of
from cli.output import Format, Output, note, show, show_json
from cli.performing import ConversationId, command_app, perform
from cli.stack import place
from client.client import Client
from client.ids import new_message_id

app = command_app()


@app.command()
def send(
    conversation_id: ConversationId,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="What to say; - reads it from stdin.")
    ],
    message_id: Annotated[
        str | None, typer.Option(help="A name for the message: a repeat of it does nothing.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Show the events until the turn is over.")
    ] = False,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds to --wait; the work goes on after that.", min=0)
    ] = None,
    output: Output = Format.text,
) -> None:
    """Send a message to a conversation.

    Temporal has it when this returns, whether a worker runs or not. A conversation at rest begins
    a new turn; one whose workflow has ended is opened again.
    """
    name = message_id if message_id is not None else new_message_id()
    perform(_send(conversation_id, text, name, wait, timeout, output), output)


async def _send(
    conversation_id: str,
    text: str,
    message_id: str,
    wait: bool,
    timeout: float | None,  # noqa: ASYNC109 - of the person's, told by an exit code of its own
    output: Format,
) -> int:
    message = message_of(text)
    client = await Client.connect((await place()).settings)
    conversation = client.conversation(conversation_id)
    end = await conversation.log.end()
    await conversation.send(message.text, message_id)
    if wait:
        state = await follow(conversation, message_id, end - 1, output, timeout)
        return conclude(conversation_id, state, output)
    if output is Format.text:
        show(message_id)
        note(f"Sent. `perdure watch {conversation_id} --after {end - 1}` shows what comes of it.")
    else:
        show_json({"conversation_id": conversation_id, "message_id": message_id}, output)
    return OK
