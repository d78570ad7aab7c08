"""`perdure ls`: list conversations, from the store alone."""

import asyncio
from typing import Any

from rich.text import Text

from perdure.agent.loop.state import PendingAction, State, actions_to_confirm
from perdure.cli.environment import find_environment, open_store
from perdure.cli.options import Format
from perdure.cli.output import escape_controls, note, show, show_list
from perdure.cli.rendering.log_pages import title_from_first_message
from perdure.events.entry import Entry
from perdure.storage.conversations import list_conversations
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import load_cached_state
from perdure.storage.log.trouble import load_trouble


async def execute(limit: int, output: Format) -> None:
    settings = (await find_environment()).settings
    store = open_store(settings)
    ids = await list_conversations(store, settings.user, limit)
    summaries = await asyncio.gather(
        *(_summarize(EventLog(store, settings.user, id)) for id in ids)
    )
    show_list(summaries, dict, _show, output)
    if not summaries and output is Format.text:
        note('There are no conversations yet: start one with `perdure run "TASK"`.')


def _show(summary: dict[str, Any]) -> None:
    line = Text(f"{summary['id']}  {summary['status'] or '?':<10} {summary['events']:>6} events  ")
    line.append(f"{(summary['last_event'] or '')[:19]:<19}  {summary['model'] or '?'}  ", "dim")
    line.append(escape_controls(summary["title"] or ""))
    if summary["tags"]:
        line.append(escape_controls(f"  [{', '.join(summary['tags'])}]"), "cyan")
    if summary["trouble"]:
        line.append("  does not go on", "yellow")
    if summary["asks"]:
        line.append(f"  {len(summary['asks'])} waiting for you", "yellow")
    show(line)


async def _summarize(log: EventLog) -> dict[str, Any]:
    """Summarize a conversation from a few objects, however long it is.

    A state is stored beside the log whenever a conversation comes to rest: where there are events
    that it does not cover, the agent is at work, or the state was lost.
    """
    state = await load_cached_state(log)
    end = await log.end(hint=state.next_seq)
    title, last_slots = await asyncio.gather(_title(log, state), log.read_slots(max(0, end - 1), 1))
    last_entry = next((slot for slot in last_slots if isinstance(slot, Entry)), None)
    at_rest = end == state.next_seq
    trouble = await load_trouble(log, end)
    return {
        "id": log.conversation_id,
        "status": state.status if at_rest else "running",
        "turn": state.turn,
        "events": end,
        "model": state.spec.model.name if state.spec else None,
        "last_event": last_entry.event.timestamp if last_entry else None,
        "title": title,
        "tags": state.spec.tags if state.spec else (),
        "trouble": trouble,
        "asks": [_call_fields(call) for call in actions_to_confirm(state)] if at_rest else [],
        "tokens": state.usage.prompt_tokens + state.usage.completion_tokens,
        "cost": state.usage.cost,
    }


async def _title(log: EventLog, state: State) -> str | None:
    return state.title or await title_from_first_message(log)


def _call_fields(pending: PendingAction) -> dict[str, Any]:
    return pending.model_dump(include={"seq", "tool_name", "tool_call_id", "risk"})
