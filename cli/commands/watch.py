"""`perdure watch`: the log as it grows."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

import typer

from cli.events_shown import fields_of_slot, show_slot
from cli.output import Format, Output, show_json
from cli.performing import ConversationId, command_app, perform
from cli.reading import followed, must_exist, to_rest
from cli.stack import log_of
from client.errors import Invalid
from storage.reader import Slot

app = command_app()


@app.command()
def watch(
    conversation_id: ConversationId,
    after: Annotated[int, typer.Option(help="Show what comes after this seq.", min=-1)] = -1,
    until_rest: Annotated[
        bool, typer.Option("--until-rest", help="End with the agent's turn.")
    ] = False,
    output: Output = Format.text,
) -> None:
    """Show the events of a conversation as they are written, until ^C.

    Only the store is needed; no worker has to run.
    """
    perform(_watch(conversation_id, after, until_rest, output), output)


async def _watch(conversation_id: str, after: int, ends: bool, output: Format) -> None:
    if output is Format.json and not ends:
        raise Invalid("A watch has no end, and JSON needs one.", "Use -o jsonl or --until-rest.")
    log = await log_of(conversation_id)
    await must_exist(log)
    slots: AsyncIterator[Slot] = to_rest(log, after) if ends else followed(log, after)
    if output is not Format.json:
        async for slot in slots:
            show_slot(slot, output)
        return
    shown: list[dict[str, Any]] = [fields_of_slot(slot) async for slot in slots]
    show_json(shown, output)
