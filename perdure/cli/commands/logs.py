"""Commands that read logs from the store: list conversations, print and verify them."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator
from dataclasses import asdict, dataclass
from typing import Any

from rich.text import Text

from perdure.agent.loop.state import actions_to_confirm
from perdure.cli.agent_in_force import show_agent
from perdure.cli.declarations import conversations, operations
from perdure.cli.environment import connect_client, find_environment, open_log
from perdure.cli.options import Format
from perdure.cli.output import escape_controls, note, print_list, show, stderr
from perdure.cli.rendering import log_pages
from perdure.cli.rendering.events import SlotPrinter, slot_fields
from perdure.client.store import open_configured_store
from perdure.errors import Invalid, NotFound, Unreachable
from perdure.events.entry import Entry
from perdure.operations.error_reports import EXIT_FAILED, EXIT_OK
from perdure.storage.conversations import list_conversations
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.fork import FORK_RUN
from perdure.storage.log.inspection import Finding
from perdure.storage.log.state import load_cached_state
from perdure.storage.log.trouble import load_trouble
from perdure.storage.log.verify import verify as find_damage

CALL_FIELDS = {"seq", "tool_name", "tool_call_id", "risk"}

NO_LIMIT = sys.maxsize
"""A limit above any number of conversations."""


async def ls(options: conversations.Ls) -> None:
    logs = await _list_logs(options.limit)
    summaries = await asyncio.gather(*map(_summarize, logs))
    with print_list(dict, _show_summary, options.output) as print_summary:
        for summary in summaries:
            print_summary(summary)
    if not summaries and options.output is Format.text:
        note('There are no conversations yet: start one with `perdure run "TASK"`.')


async def _list_logs(limit: int) -> list[EventLog]:
    settings = (await find_environment()).settings
    store = open_configured_store(settings)
    ids = await list_conversations(store, settings.user, limit)
    return [EventLog(store, settings.user, id) for id in ids]


def _show_summary(summary: dict[str, Any]) -> None:
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
    title = state.title or await log_pages.title_from_first_message(log)
    last_slots = await log.read_slots(max(0, end - 1), 1)
    last_entry = next((slot for slot in last_slots if isinstance(slot, Entry)), None)
    at_rest = end == state.next_seq
    is_fork = last_entry is not None and last_entry.origin.run == FORK_RUN
    waiting = actions_to_confirm(state) if at_rest else ()
    trouble = await load_trouble(log, end)
    return {
        "id": log.conversation_id,
        "status": "idle" if is_fork else state.status if at_rest else "running",
        "turn": state.turn,
        "events": end,
        "model": state.spec.model.name if state.spec else None,
        "last_event": last_entry.event.timestamp if last_entry else None,
        "title": title,
        "tags": state.spec.tags if state.spec else (),
        "trouble": trouble,
        "asks": [call.model_dump(include=CALL_FIELDS) for call in waiting],
        "tokens": state.usage.prompt_tokens + state.usage.completion_tokens,
        "cost": state.usage.cost,
    }


async def show_log(options: conversations.Show) -> int:
    log = await open_log(options.conversation_id)
    await log_pages.require_conversation(log)
    if options.agent:
        return await show_agent(log, options.output)
    kinds: set[str] = set()
    damaged = count = 0
    output, kind, seq = options.output, options.kind, options.seq
    printer = SlotPrinter(output, options.full or seq is not None)
    with print_list(slot_fields, printer.print_slot, output) as print_slot:
        after = options.after if seq is None else seq - 1
        async for slot in log_pages.read_slots(log, after):
            if isinstance(slot, Entry):
                kinds.add(slot.event.kind)
                if kind not in (None, slot.event.kind):
                    continue
            else:
                damaged += 1
            print_slot(slot)
            count += 1
            if count == options.limit or seq is not None:
                break
    if seq is not None and not count:
        end = await log.end()
        raise NotFound(f"There is no event {seq}.", f"The newest one is {end - 1}.")
    if kind is not None and not count and kinds:
        note(f"No event is a {kind}: there are {', '.join(sorted(kinds))}.")
    if trouble := await load_trouble(log, await log.end()):
        note(trouble, "yellow")
    if damaged:
        note(f"{damaged} of the objects cannot be read.", "red")
    return EXIT_FAILED if damaged else EXIT_OK


@dataclass
class Verdict:
    """The verdict on one conversation; `events` counts those it has or should have."""

    id: str
    whole: bool
    events: int
    findings: list[dict[str, Any]]


async def verify(options: operations.Verify) -> int:
    ids, output = options.ids or [], options.output
    if options.every == bool(ids):
        raise Invalid("Name conversations, or give --all.", "`perdure ls` lists them.")
    whole = True
    with print_list(asdict, _show_verdict, output) as print_verdict:
        async with contextlib.aclosing(_open_logs(ids)) as logs:
            async for log in logs:
                verdict = await _verify_log(log, output)
                whole = whole and verdict.whole
                print_verdict(verdict)
    return EXIT_OK if whole else EXIT_FAILED


async def _open_logs(ids: list[str]) -> AsyncGenerator[EventLog, None]:
    """Yield the logs of the conversations; of all where none is named."""
    for log in await _list_logs(NO_LIMIT) if not ids else ():
        yield log
    for name in ids:
        log = await open_log(name)
        await log_pages.require_conversation(log)
        yield log


async def _verify_log(log: EventLog, output: Format) -> Verdict:
    verdict = Verdict(log.conversation_id, whole=True, events=0, findings=[])

    def report_progress(done: int, end: int) -> None:
        verdict.events = end
        if output is Format.text and stderr.is_terminal:
            stderr.print(f"{done:,} of {end:,}", end="\r", style="dim")

    count = await _query_event_count(log.conversation_id)
    async for finding in find_damage(log, count, report_progress):
        verdict.whole = verdict.whole and finding.kind == "note"
        verdict.findings.append(asdict(finding))
        if output is Format.text:
            _show_finding(log.conversation_id, finding)
    return verdict


def _show_verdict(verdict: Verdict) -> None:
    verdict_text = ("whole", "green") if verdict.whole else ("DAMAGED", "bold red")
    show(Text.assemble(f"{verdict.id}  {verdict.events:>6} events  ", verdict_text))


def _show_finding(conversation_id: str, finding: Finding) -> None:
    position = f"seq {finding.seq}: " if finding.seq is not None else ""
    line = escape_controls(f"{conversation_id}  {position}{finding.detail} ({finding.key})")
    show(Text(line, "dim" if finding.kind == "note" else "red"))


async def _query_event_count(conversation_id: str) -> int:
    """Ask the workflow how many events there must be; 0 where it does not answer."""
    with contextlib.suppress(Unreachable, Invalid):
        client = await connect_client()
        answer = await client.conversation(conversation_id).workflow.query_status()
        return answer.next_seq if answer else 0
    return 0
