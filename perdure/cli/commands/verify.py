"""`perdure verify`: check every stored object of conversations and discussions."""

import contextlib
import sys
from collections.abc import AsyncGenerator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from perdure.agent.discussion.spec import DiscussionKey
from perdure.agent.discussion.steps import speaker_conversation_id
from perdure.cli.declarations import discussions
from perdure.cli.declarations.operations import Verify
from perdure.cli.environment import connect_servers, open_store_alone, open_stored_log
from perdure.cli.options import Format
from perdure.cli.output import escape_controls, is_terminal, print_list, show_parts
from perdure.cli.rendering import log_pages
from perdure.errors import Invalid, NotFound, Unreachable
from perdure.operations.error_reports import EXIT_FAILED, EXIT_OK
from perdure.storage.conversations import list_conversations
from perdure.storage.discussions.folder import list_sessions
from perdure.storage.discussions.verify import verify_discussion
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.inspection import Finding
from perdure.storage.log.verify import verify as find_damage


@dataclass
class Verdict:
    """The verdict on one log; `events` counts those it has or should have."""

    id: str
    whole: bool
    events: int
    findings: list[dict[str, Any]]
    kind: Literal["conversation", "discussion"] = "conversation"


async def verify(options: Verify) -> int:
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
        if options.every:
            async for verdict in _verify_sessions([], output):
                whole = whole and verdict.whole
                print_verdict(verdict)
    return EXIT_OK if whole else EXIT_FAILED


async def verify_discussions(options: discussions.Verify) -> int:
    sessions, output = options.sessions or [], options.output
    if options.every == bool(sessions):
        raise Invalid("Name discussions, or give --all.", "`perdure discussion ls` lists them.")
    whole = True
    with print_list(asdict, _show_verdict, output) as print_verdict:
        async for verdict in _verify_sessions(sessions, output):
            whole = whole and verdict.whole
            print_verdict(verdict)
    return EXIT_OK if whole else EXIT_FAILED


async def _verify_sessions(sessions: list[str], output: Format) -> AsyncGenerator[Verdict, None]:
    """Yield the verdicts on discussions, and on the conversations of their agents.

    Without a name, on all of them. Raises NotFound, Invalid.
    """
    store, user = await open_store_alone()
    for name in sessions or await list_sessions(store, user):
        try:
            verified = await verify_discussion(store, user, name)
        except ValueError as error:
            raise Invalid(str(error)) from error
        if not verified.objects and name in sessions:
            raise NotFound.for_discussion(name)
        if not verified.objects:  # it was just deleted
            continue
        findings = [asdict(finding) for finding in verified.findings]
        if output is Format.text:
            for finding in verified.findings:
                _show_finding(name, finding)
        yield Verdict(name, not findings, verified.events, findings, "discussion")
        key = DiscussionKey(user_id=user, session_id=name)
        for speaker in verified.speakers:
            log = await open_stored_log(speaker_conversation_id(key, speaker))
            if await log.exists():
                yield await _verify_log(log, output)


async def _open_logs(ids: list[str]) -> AsyncGenerator[EventLog, None]:
    """Yield the logs of the conversations; of all where none is named."""
    store, user = await open_store_alone()
    for name in ids or await list_conversations(store, user, sys.maxsize, with_hidden=True):
        log = await open_stored_log(name)
        await log_pages.require_conversation(log)
        yield log


async def _verify_log(log: EventLog, output: Format) -> Verdict:
    verdict = Verdict(log.conversation_id, whole=True, events=0, findings=[])

    def report_progress(done: int, end: int) -> None:
        verdict.events = end
        if output is Format.text and is_terminal(sys.stderr):
            from perdure.cli.consoles import stderr

            stderr.print(f"{done:,} of {end:,}", end="\r", style="dim")

    count = await _query_event_count(log)
    async for finding in find_damage(log, count, report_progress):
        verdict.whole = verdict.whole and finding.kind == "note"
        verdict.findings.append(asdict(finding))
        if output is Format.text:
            _show_finding(log.conversation_id, finding)
    return verdict


def _show_verdict(verdict: Verdict) -> None:
    verdict_text = ("whole", "green") if verdict.whole else ("DAMAGED", "bold red")
    name = verdict.id if verdict.kind == "conversation" else f"discussion {verdict.id}"
    show_parts((f"{name}  {verdict.events:>6} events  ", ""), verdict_text)


def _show_finding(conversation_id: str, finding: Finding) -> None:
    position = f"seq {finding.seq}: " if finding.seq is not None else ""
    line = escape_controls(f"{conversation_id}  {position}{finding.detail} ({finding.key})")
    show_parts((line, "dim" if finding.kind == "note" else "red"))


async def _query_event_count(log: EventLog) -> int:
    """Ask the workflow how many events there must be; 0 where it does not answer."""
    with contextlib.suppress(Unreachable, Invalid):
        client = await connect_servers()
        answer = await client.conversation(log.conversation_id, log.user_id).workflow.query_status()
        return answer.next_seq if answer else 0
    return 0
