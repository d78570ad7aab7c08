"""`perdure reject`: actions that wait for a person will not happen."""

from typing import Annotated

import typer

from cli.output import Format, Output
from cli.performing import ConversationId, command_app, perform
from cli.waiting import Calls, Through, answer

app = command_app()


@app.command()
def reject(
    conversation_id: ConversationId,
    call: Calls = None,
    through: Through = None,
    reason: Annotated[str, typer.Option(help="Why; the agent is told.")] = "",
    output: Output = Format.text,
) -> None:
    """Do not let actions happen that wait for a person; the agent goes on without them.

    Without --call and --through it shows which there are, and rejects none.
    """
    perform(answer(conversation_id, False, call or [], through, reason, output), output)
