"""`perdure close`."""

from cli.output import Format, Output
from cli.performing import ConversationId, command_app, perform
from cli.steering import steer
from client.conversation import Conversation

app = command_app()


@app.command()
def close(conversation_id: ConversationId, output: Output = Format.text) -> None:
    """End a conversation for good; its log stays."""
    said = "It ends between two steps; its log stays."
    perform(steer(conversation_id, Conversation.close, said, output), output)
