"""Commands that send a conversation a signal: pause, resume, close and so on."""

from typing import Literal

from perdure.cli.environment import connect_client
from perdure.cli.options import Format
from perdure.cli.output import confirm

Signal = Literal["pause", "resume", "interrupt", "condense", "close"]


async def execute(conversation_id: str, signal: Signal, confirmation: str, output: Format) -> None:
    """Send the signal to the conversation, then print `confirmation`."""
    client = await connect_client()
    await getattr(client.conversation(conversation_id), signal)()
    confirm(confirmation, {"conversation_id": conversation_id}, output)
