"""`perdure watch`: the log as it grows."""

import contextlib
from collections.abc import AsyncIterator
from typing import Annotated

import typer

from cli.events_shown import fields_of_slot, show_slot
from cli.following import beside, trouble
from cli.growing import growing
from cli.output import Format, Output, show_json
from cli.performing import ConversationId, command_app, perform
from cli.reading import followed, must_exist, to_rest
from cli.stack import log_of, place
from client.client import Client
from client.errors import Invalid, Unreachable
from client.live import Growing
from events.entry import Entry
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

    Only the store is needed; no worker has to run. On a terminal, and where Temporal answers, the
    words of the model and of tools are shown while they grow.
    """
    perform(_watch(conversation_id, after, until_rest, output), output)


async def _watch(conversation_id: str, after: int, ends: bool, output: Format) -> None:
    if output is Format.json and not ends:
        raise Invalid("A watch has no end, and JSON needs one.", "Use -o jsonl or --until-rest.")
    log = await log_of(conversation_id)
    await must_exist(log)
    slots: AsyncIterator[Slot] = to_rest(log, after) if ends else followed(log, after)
    if output is Format.json:
        show_json([fields_of_slot(slot) async for slot in slots], output)
        return
    async with growing(_live(conversation_id), output) as settle, beside(_trouble(conversation_id)):
        async for slot in slots:
            if isinstance(slot, Entry):
                settle(slot)
            show_slot(slot, output)


async def _trouble(conversation_id: str) -> None:
    with contextlib.suppress(Unreachable, Invalid):  # the store alone is enough to watch
        client = await Client.connect((await place()).settings)
        await trouble(client.conversation(conversation_id))


async def _live(conversation_id: str) -> AsyncIterator[tuple[Growing, ...]]:
    """What is at work, where there is a Temporal that can tell."""
    with contextlib.suppress(Unreachable, Invalid):
        client = await Client.connect((await place()).settings)
        async for news in client.conversation(conversation_id).live():
            yield news
