"""`perdure condense`."""

from cli.output import Format, Output
from cli.performing import ConversationId, command_app, perform
from cli.steering import steer
from client.conversation import Conversation

app = command_app()


@app.command()
def condense(conversation_id: ConversationId, output: Output = Format.text) -> None:
    """Make what the model is shown smaller, by the conversation's condenser."""
    said = "It is condensed before the model is asked again; the log keeps everything."
    perform(steer(conversation_id, Conversation.condense, said, output), output)
