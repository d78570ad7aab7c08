"""Commands that read logs from the store: print and verify them."""

import contextlib
import sys
from collections.abc import AsyncGenerator
from dataclasses import asdict, dataclass
from typing import Any

from rich.text import Text

from perdure.cli.agent_in_force import show_agent
from perdure.cli.declarations import conversations, operations
from perdure.cli.environment import connect_client, open_log, open_store_alone
from perdure.cli.options import Format
from perdure.cli.output import escape_controls, note, print_list, show, stderr
from perdure.cli.rendering import log_pages
from perdure.cli.rendering.events import SlotPrinter, slot_fields
from perdure.errors import Invalid, NotFound, Unreachable
from perdure.events.entry import Entry
from perdure.operations.error_reports import EXIT_FAILED, EXIT_OK
from perdure.storage.conversations import list_conversations
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.inspection import Finding
from perdure.storage.log.trouble import load_trouble
from perdure.storage.log.verify import verify as find_damage


async def show_log(options: conversations.Show) -> int:
    log = await open_log(options.conversation_id)
    await log_pages.require_conversation(log)
    if options.agent:
        return await show_agent(log, options.output)
    kinds: set[str] = set()
    damaged = count = 0
    output, kind, seq = options.output, options.kind, options.seq
    full = options.full or seq is not None
    printer = SlotPrinter(output, full)
    with print_list(slot_fields, printer.print_slot, output) as print_slot:
        after = options.after if seq is None else seq - 1
        async for slot in log_pages.read_slots(log, after):
            if isinstance(slot, Entry):
                kinds.add(slot.event.kind)
                if kind not in (None, slot.event.kind):
                    continue
                slot = await log_pages.load_contents(log, slot) if full else slot
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
    store, user = await open_store_alone()
    for name in ids or await list_conversations(store, user, sys.maxsize):
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
