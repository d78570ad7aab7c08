"""`perdure fork`: a new conversation that begins as another one did."""

from typing import Annotated

import typer

from cli.output import Format, Output, note, show, show_json
from cli.performing import ConversationId, command_app, perform
from cli.script import findable
from cli.stack import place
from client import fork as forks
from client.client import Client
from client.fork import Forked

app = command_app()


@app.command()
def fork(
    conversation_id: ConversationId,
    at: Annotated[
        int | None, typer.Option(metavar="SEQ", help="The last event of it to begin with.", min=0)
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="The model that the fork asks from then on.")
    ] = None,
    output: Output = Format.text,
) -> None:
    """Go on from an earlier point of a conversation, in a new one.

    The events up to SEQ, all of them if none is named, are referred to and not copied. The
    conversation goes on by itself, and the fork begins with a message, or with `perdure resume`.
    """
    perform(_fork(conversation_id, at, model, output), output)


async def _fork(conversation_id: str, at: int | None, model: str | None, output: Format) -> None:
    client = await Client.connect((await place()).settings)
    chosen = findable(model) if model is not None else None
    forked = await forks.fork(client, conversation_id, at, chosen)
    if output is Format.text:
        show(forked.conversation.id)
        _explain(forked)
        return
    fields = {
        "conversation_id": forked.conversation.id,
        "parent": conversation_id,
        "at": forked.at,
        "status": forked.state.status,
        "unanswered": [one.tool_call_id for one in forked.state.pending],
        "workspace": _workspace(forked),
    }
    show_json(fields, output)


def _explain(forked: Forked) -> None:
    """What a person may not expect of it."""
    name, state = forked.conversation.id, forked.state
    note(f"It begins with the events up to seq {forked.at}, and is {state.status}.")
    if calls := [one.tool_name for one in state.pending if not one.repeatable]:
        note(
            f"Not done again: {', '.join(calls)} had no result by then. Unless it waits for you, "
            "the agent is told that the outcome is unknown."
        )
    if workspace := _workspace(forked):
        note(f"It works in the same directory as the other conversation: {workspace}.", "yellow")
    else:
        note("It works in a directory of its own, which is empty.")
    going_on = f"`perdure resume {name}`, or " if state.status == "running" else ""
    note(f"To go on: {going_on}`perdure send {name} TEXT --wait`.")


def _workspace(forked: Forked) -> str | None:
    return forked.state.spec.workspace if forked.state.spec else None
