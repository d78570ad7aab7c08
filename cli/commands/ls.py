"""`perdure ls`: what there is, from the store alone."""

import asyncio
from typing import Annotated, Any

import typer
from rich.text import Text

from agent.state import State
from cli.output import Format, Output, note, plain, show, show_json
from cli.performing import command_app, perform
from cli.stack import place
from client.store import store_of
from events.content import text_of
from events.messages import MessageEvent
from storage.conversations import conversations
from storage.errors import Damaged, Missing
from storage.log import EventLog

FIRST = 8
"""How many of the first events are looked through for what was asked for."""

TITLE = 60

app = command_app()


@app.command()
def ls(
    limit: Annotated[int, typer.Option(help="List so many at most.", min=1)] = 20,
    output: Output = Format.text,
) -> None:
    """List conversations, the newest first."""
    perform(_ls(limit, output), output)


async def _ls(limit: int, output: Format) -> None:
    settings = (await place()).settings
    store = store_of(settings)
    ids = await conversations(store, settings.user, limit)
    listed = await asyncio.gather(*(_summary(EventLog(store, settings.user, id)) for id in ids))
    if output is Format.json:
        show_json(listed, output)
    elif output is Format.jsonl:
        for one in listed:
            show_json(one, output)
    else:
        _show(listed)


def _show(listed: list[dict[str, Any]]) -> None:
    for one in listed:
        about = Text(f"{one['id']}  {one['status'] or '?':<8} {one['events']:>6} events  ")
        about.append(f"{(one['last_event'] or '')[:19]:<19}  {one['model'] or '?'}  ", "dim")
        show(about.append(plain(one["title"] or "")))
    if not listed:
        note('There are no conversations yet: start one with `perdure run "TASK"`.')


async def _summary(log: EventLog) -> dict[str, Any]:
    """What can be told by a few objects, however long the conversation is.

    A state is kept beside the log whenever a conversation comes to rest: where there are events
    that it does not know of, the agent is at work.
    """
    kept = await log.load_state()
    state = State.model_validate_json(kept) if kept is not None else State()
    end = await log.end(hint=state.next_seq)
    first, last = await asyncio.gather(log.readable(0, FIRST), log.readable(max(0, end - 1), 1))
    said = (slot.event for slot in first if not isinstance(slot, Damaged | Missing))
    titles = (_title(event) for event in said if isinstance(event, MessageEvent))
    newest = next((slot for slot in last if not isinstance(slot, Damaged | Missing)), None)
    return {
        "id": log.conversation_id,
        "status": state.status if end == state.next_seq else "running",
        "turn": state.turn,
        "events": end,
        "model": state.spec.model.name if state.spec else None,
        "last_event": newest.event.timestamp if newest else None,
        "title": next(titles, None),
    }


def _title(event: MessageEvent) -> str:
    text = " ".join(text_of(event.llm_message.content).split())
    return text if len(text) <= TITLE else f"{text[:TITLE]}..."
