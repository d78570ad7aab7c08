"""`perdure show`: the log as it is written by now."""

from typing import Annotated, Any

import typer

from cli.events_shown import fields_of_slot, show_slot
from cli.failures import FAILED, OK
from cli.output import Format, Output, note, show_json
from cli.performing import ConversationId, command_app, perform
from cli.reading import must_exist, written
from cli.stack import log_of
from events.entry import Entry
from storage.trouble import kept_trouble

app = command_app()


@app.command()
def show(
    conversation_id: ConversationId,
    after: Annotated[int, typer.Option(help="Show what comes after this seq.", min=-1)] = -1,
    limit: Annotated[int | None, typer.Option(help="Show so many at most.", min=1)] = None,
    kind: Annotated[str | None, typer.Option(help="Show this kind of event alone.")] = None,
    output: Output = Format.text,
) -> None:
    """Print the log of a conversation.

    Only the store is needed. What is damaged is named, and the rest is shown: then the exit code
    is 1.
    """
    perform(_show(conversation_id, after, limit, kind, output), output)


async def _show(
    conversation_id: str, after: int, limit: int | None, kind: str | None, output: Format
) -> int:
    log = await log_of(conversation_id)
    await must_exist(log)
    shown: list[dict[str, Any]] = []
    kinds: set[str] = set()
    damaged = count = 0
    async for slot in written(log, after):
        if isinstance(slot, Entry):
            kinds.add(slot.event.kind)
            if kind not in (None, slot.event.kind):
                continue
        else:
            damaged += 1
        if output is Format.json:
            shown.append(fields_of_slot(slot))
        else:
            show_slot(slot, output)
        count += 1
        if count == limit:
            break
    if output is Format.json:
        show_json(shown, output)
    if kind is not None and not count and kinds:
        note(f"No event is a {kind}: there are {', '.join(sorted(kinds))}.")
    if trouble := await kept_trouble(log, await log.end()):
        note(trouble, "yellow")
    if damaged:
        note(f"{damaged} of the objects cannot be read.", "red")
    return FAILED if damaged else OK
