"""`perdure interrupt`."""

from cli.output import Format, Output
from cli.performing import ConversationId, command_app, perform
from cli.steering import steer
from client.conversation import Conversation

app = command_app()


@app.command()
def interrupt(conversation_id: ConversationId, output: Output = Format.text) -> None:
    """Stop the model or the tool that is at work; the conversation waits for its user.

    What it had so far is kept, and actions that were not begun are rejected.
    """
    said = "What runs is stopped; a message or `perdure resume` goes on."
    perform(steer(conversation_id, Conversation.interrupt, said, output), output)
