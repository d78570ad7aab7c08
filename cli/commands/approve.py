"""`perdure approve`: let actions happen that wait for it."""

from typing import Annotated

import typer

from cli.output import Format, Output
from cli.performing import ConversationId, command_app, perform
from cli.waiting import answer

app = command_app()


@app.command()
def approve(
    conversation_id: ConversationId,
    call: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="A call's id; may be repeated.")
    ] = None,
    through: Annotated[
        int | None, typer.Option(metavar="SEQ", help="All that wait, up to this seq.", min=0)
    ] = None,
    output: Output = Format.text,
) -> None:
    """Let actions happen that wait for a person.

    Without --call and --through it shows which there are, and approves none.
    """
    perform(answer(conversation_id, True, call or [], through, "", output), output)
