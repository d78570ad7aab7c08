"""`perdure pause`."""

from cli.output import Format, Output
from cli.performing import ConversationId, command_app, perform
from cli.steering import steer
from client.conversation import Conversation

app = command_app()


@app.command()
def pause(conversation_id: ConversationId, output: Output = Format.text) -> None:
    """Pause a conversation between two steps."""
    said = "A pause is asked for; it comes between two steps."
    perform(steer(conversation_id, Conversation.pause, said, output), output)
