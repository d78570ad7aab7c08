"""Telling a conversation to pause, to go on, or to end."""

from collections.abc import Awaitable, Callable

from cli.output import Format, note, show_json
from cli.stack import place
from client.client import Client
from client.conversation import Conversation


async def steer(
    conversation_id: str,
    tell: Callable[[Conversation], Awaitable[None]],
    said: str,
    output: Format,
) -> None:
    """Have Temporal tell the conversation; `said` is what the person is told then."""
    client = await Client.connect((await place()).settings)
    await tell(client.conversation(conversation_id))
    if output is Format.text:
        note(said)
    else:
        show_json({"conversation_id": conversation_id}, output)
