"""`perdure resume`."""

from cli.output import Format, Output
from cli.performing import ConversationId, command_app, perform
from cli.steering import steer
from client.conversation import Conversation

app = command_app()


@app.command()
def resume(conversation_id: ConversationId, output: Output = Format.text) -> None:
    """Go on after a pause, an interrupt, an error or a limit."""
    said = "It goes on."
    perform(steer(conversation_id, Conversation.resume, said, output), output)
