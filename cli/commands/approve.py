"""`perdure approve`: let actions happen that wait for it."""

from cli.output import Format, Output
from cli.performing import ConversationId, command_app, perform
from cli.waiting import Calls, Through, answer

app = command_app()


@app.command()
def approve(
    conversation_id: ConversationId,
    call: Calls = None,
    through: Through = None,
    output: Output = Format.text,
) -> None:
    """Let actions happen that wait for a person.

    Without --call and --through it shows which there are, and approves none.
    """
    perform(answer(conversation_id, True, call or [], through, "", output), output)
