"""`perdure verify`: check the integrity of logs."""

import contextlib
import sys
from collections.abc import AsyncGenerator
from dataclasses import asdict, dataclass
from typing import Any

from rich.text import Text

from perdure.cli.environment import connect_client, find_environment, open_log, open_store
from perdure.cli.options import Format
from perdure.cli.output import escape_controls, show, show_json, stderr
from perdure.cli.rendering.log_pages import require_conversation
from perdure.errors import Invalid, Unreachable
from perdure.operations.error_reports import EXIT_FAILED, EXIT_OK
from perdure.storage.conversations import list_conversations
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.inspection import Finding
from perdure.storage.log.verify import ReportProgress
from perdure.storage.log.verify import verify as findings_of

NO_LIMIT = sys.maxsize
"""A limit above any number of conversations."""


@dataclass
class Verdict:
    """The verdict on one conversation; `events` counts those it has or should have."""

    id: str
    whole: bool = True
    events: int = 0

    def add(self, finding: Finding) -> None:
        self.whole = self.whole and finding.kind == "note"


async def execute(ids: list[str], every: bool, output: Format) -> int:
    if every == bool(ids):
        raise Invalid("Name conversations, or give --all.", "`perdure ls` lists them.")
    verdicts: list[Verdict] = []
    documents: list[dict[str, Any]] = []
    async with contextlib.aclosing(_logs(ids, every)) as logs:
        async for log in logs:
            verdict, fields = await _verify_log(log, output)
            verdicts.append(verdict)
            documents += [fields] if output is Format.json else []
    if output is Format.json:
        show_json(documents, output)
    return EXIT_OK if all(verdict.whole for verdict in verdicts) else EXIT_FAILED


async def _logs(ids: list[str], every: bool) -> AsyncGenerator[EventLog, None]:
    if every:
        settings = (await find_environment()).settings
        store = open_store(settings)
        for name in await list_conversations(store, settings.user, NO_LIMIT):
            yield EventLog(store, settings.user, name)
    for name in ids:
        log = await open_log(name)
        await require_conversation(log)
        yield log


async def _verify_log(log: EventLog, output: Format) -> tuple[Verdict, dict[str, Any]]:
    verdict = Verdict(log.conversation_id)
    findings: list[dict[str, Any]] = []
    progress = _count_events(verdict, output)
    async for finding in findings_of(log, await _query_event_count(log.conversation_id), progress):
        verdict.add(finding)
        if output is Format.text:
            _print_finding(log.conversation_id, finding)
        else:
            findings.append(asdict(finding))
    fields = {**asdict(verdict), "findings": findings}
    if output is Format.jsonl:
        show_json(fields, output)
    elif output is Format.text:
        _print_verdict(verdict)
    return verdict, fields


def _print_verdict(verdict: Verdict) -> None:
    verdict_text = ("whole", "green") if verdict.whole else ("DAMAGED", "bold red")
    show(Text.assemble(f"{verdict.id}  {verdict.events:>6} events  ", verdict_text))


def _print_finding(conversation_id: str, finding: Finding) -> None:
    position = f"seq {finding.seq}: " if finding.seq is not None else ""
    style = "dim" if finding.kind == "note" else "red"
    show(
        Text(
            escape_controls(f"{conversation_id}  {position}{finding.detail} ({finding.key})"),
            style=style,
        )
    )


def _count_events(verdict: Verdict, output: Format) -> ReportProgress:
    """Return what counts the events in `verdict`, and shows the count on a terminal."""
    interactive = output is Format.text and stderr.is_terminal

    def report_progress(done: int, end: int) -> None:
        verdict.events = end
        if interactive:
            stderr.print(f"{done:,} of {end:,}", end="\r", style="dim")

    return report_progress


async def _query_event_count(conversation_id: str) -> int:
    """Ask the workflow how many events there must be; 0 where it does not answer."""
    with contextlib.suppress(Unreachable, Invalid):
        client = await connect_client()
        answer = await client.conversation(conversation_id).workflow.query_status()
        return answer.next_seq if answer else 0
    return 0
