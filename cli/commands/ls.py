"""`perdure ls`: what there is, from the store alone."""

import asyncio
from typing import Annotated, Any

import typer
from rich.text import Text

from agent.state import Pending, State, asking
from cli.output import Format, Output, note, plain, show, show_json
from cli.performing import command_app, perform
from cli.reading import first_words
from cli.stack import place
from client.store import store_of
from events.entry import Entry
from storage.conversations import conversations
from storage.log import EventLog
from storage.state import kept_state
from storage.trouble import kept_trouble

app = command_app()


@app.command()
def ls(
    limit: Annotated[int, typer.Option(help="List so many at most.", min=1)] = 20,
    output: Output = Format.text,
) -> None:
    """List conversations, the newest first.

    The store alone is asked; `temporal workflow list` finds them by status, tag and so on.
    """
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
        about = Text(f"{one['id']}  {one['status'] or '?':<10} {one['events']:>6} events  ")
        about.append(f"{(one['last_event'] or '')[:19]:<19}  {one['model'] or '?'}  ", "dim")
        about.append(plain(one["title"] or ""))
        if one["tags"]:
            about.append(plain(f"  [{', '.join(one['tags'])}]"), "cyan")
        if one["trouble"]:
            about.append("  does not go on", "yellow")
        if one["asks"]:
            about.append(f"  {len(one['asks'])} waiting for you", "yellow")
        show(about)
    if not listed:
        note('There are no conversations yet: start one with `perdure run "TASK"`.')


async def _summary(log: EventLog) -> dict[str, Any]:
    """What can be told by a few objects, however long the conversation is.

    A state is kept beside the log whenever a conversation comes to rest: where there are events
    that it does not know of, the agent is at work, or the state was lost.
    """
    state = await kept_state(log)
    end = await log.end(hint=state.next_seq)
    title, last = await asyncio.gather(_title(log, state), log.readable(max(0, end - 1), 1))
    newest = next((slot for slot in last if isinstance(slot, Entry)), None)
    at_rest = end == state.next_seq
    trouble = await kept_trouble(log, end)
    return {
        "id": log.conversation_id,
        "status": state.status if at_rest else "running",
        "turn": state.turn,
        "events": end,
        "model": state.spec.model.name if state.spec else None,
        "last_event": newest.event.timestamp if newest else None,
        "title": title,
        "tags": state.spec.tags if state.spec else (),
        "trouble": trouble,
        "asks": [_call(one) for one in asking(state)] if at_rest else [],
        "tokens": state.spent.prompt_tokens + state.spent.completion_tokens,
        "cost": state.spent.cost,
    }


async def _title(log: EventLog, state: State) -> str | None:
    return state.title or await first_words(log)


def _call(pending: Pending) -> dict[str, Any]:
    return pending.model_dump(include={"seq", "tool_name", "tool_call_id", "risk"})
