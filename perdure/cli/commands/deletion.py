"""`perdure rm` and `perdure discussion rm`: delete conversations and discussions for good."""

import asyncio
import sys

import typer

from perdure.cli.declarations import discussions
from perdure.cli.declarations.operations import Deletion
from perdure.cli.environment import connect_servers
from perdure.cli.options import Format
from perdure.cli.output import note, shorten_line, show_result
from perdure.client.client import Client
from perdure.errors import Conflict
from perdure.operations.purge import PurgeResult, list_purge_targets, purge
from perdure.operations.purge_discussion import list_discussion_targets, purge_discussion
from perdure.storage.summaries import summarize
from perdure.wording import count

MAX_TITLE_CHARS = 60


async def rm(options: Deletion) -> None:
    client = await connect_servers()
    names: dict[str, None] = {}
    for conversation_id in options.conversation_ids:
        targets = await list_purge_targets(
            client, conversation_id, options.with_forks, options.force
        )
        names |= dict.fromkeys(targets)
    if not options.yes:
        await _confirm(client, list(names))
    _report(await purge(client, list(names)), options.output)


async def rm_discussions(options: discussions.Rm) -> None:
    client = await connect_servers()
    for session_id in options.sessions:
        targets = await list_discussion_targets(
            client, session_id, options.with_forks, options.force
        )
        if not options.yes:
            note(f"discussion {session_id}", "bold")
            await _confirm(client, targets, f"{session_id} and ")
        _report(await purge_discussion(client, session_id, targets), options.output)


def _report(purged: PurgeResult, output: Format) -> None:
    if output is Format.text:
        _show_purged(purged)
        return
    fields = {
        "purged": list(purged.objects),
        "objects": purged.objects,
        "histories": purged.histories,
        "kept": purged.undeleted_reason,
    }
    show_result(fields, output)


async def _confirm(client: Client, names: list[str], more: str = "") -> None:
    """Raises Conflict unless a person at a terminal says yes."""
    if not sys.stdin.isatty():
        raise Conflict("Nothing was deleted: there is no terminal to ask at.", "Give --yes.")
    found = await asyncio.gather(*(summarize(client.store, client.user_id, name) for name in names))
    for name, summary in zip(names, found, strict=True):
        title = shorten_line(summary.title or "", MAX_TITLE_CHARS) if summary else ""
        note(f"{name}  {title}".rstrip(), "bold")
    try:
        sure = typer.confirm(
            f"Delete {more}{count(len(names), 'conversation')} for good?", err=True
        )
    except typer.Abort:
        sure = False
    if not sure:
        raise Conflict("Nothing was deleted.", "Say yes, or give --yes.")


def _show_purged(purged: PurgeResult) -> None:
    for name, objects in purged.objects.items():
        note(f"{name}: {count(objects, 'object')} deleted")
    note(f"{count(purged.histories, 'history', 'histories')} in Temporal deleted")
    if reason := purged.undeleted_reason:
        note(f"Temporal keeps others until its retention time is over: {reason}", "yellow")
