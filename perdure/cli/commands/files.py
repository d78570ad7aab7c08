"""Commands that show the files of a conversation, and what it changed."""

import asyncio
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from perdure.agent.loop.state import State
from perdure.cli.declarations import conversations
from perdure.cli.environment import find_environment, open_log
from perdure.cli.follow import TurnView, print_result
from perdure.cli.options import Format
from perdure.cli.output import note, print_list, show, show_result
from perdure.cli.rendering import log_pages
from perdure.cli.workspaces import describe_workspace
from perdure.client.conversation import Conversation
from perdure.client.file_changes import FileChange, WorkspaceChanges, read_workspace_changes
from perdure.errors import Conflict, NotFound
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import read_state
from perdure.storage.snapshots.manifest import SnapshotCache, load
from perdure.storage.snapshots.restore import restore
from perdure.storage.snapshots.tree import File

MAX_NOTED_CHANGES = 20
"""Changed files that are named after a run."""


async def diff(options: conversations.Diff) -> None:
    log = await open_log(options.conversation_id)
    await log_pages.require_conversation(log)
    changes = await read_workspace_changes(log, options.after)
    summary = await asyncio.to_thread(changes.summarize)
    for fault in changes.faults:
        note(fault, "yellow")
    if options.output is not Format.text:
        with print_list(asdict, lambda _: None, options.output) as print_change:
            for change in summary:
                print_change(change)
    elif options.stat:
        for change in summary:
            show(describe_change(change))
    else:
        show((await asyncio.to_thread(changes.diff)).removesuffix("\n"))
    if not summary and options.output is Format.text:
        note("No file is changed.")


async def files(options: conversations.Files) -> None:
    log = await open_log(options.conversation_id)
    await log_pages.require_conversation(log)
    state = await read_state(log)
    entry = await log.get(state.files_seq) if state.files_seq is not None else None
    key = entry.files.snapshot if entry and entry.files else None
    if options.copy is not None:
        await _copy_files(log, key, options.copy)
        fields = {"conversation_id": log.conversation_id, "copy": str(options.copy)}
        show_result(fields, options.output, str(options.copy))
        return
    settings = (await find_environment()).settings
    directory = state.spec.workspace if state.spec else None
    note(f"workspace  {describe_workspace(settings, log.conversation_id, directory)}")
    tree = (await load(log.store, key, SnapshotCache())).tree if key else {}
    sizes = {path: item.size for path, item in tree.items() if isinstance(item, File)}
    with print_list(_file_fields, _show_file, options.output) as print_file:
        for file in sizes.items():
            print_file(file)
    if options.output is Format.text:
        copy = f"`perdure files {log.conversation_id} --copy DIR` copies them to a new folder."
        note(copy if sizes else "The store has no files of it.")


def _file_fields(file: tuple[str, int]) -> dict[str, str | int]:
    return {"path": file[0], "bytes": file[1]}


def _show_file(file: tuple[str, int]) -> None:
    show(f"{file[1]:>12,}  {file[0]}")


async def _copy_files(log: EventLog, key: str | None, target: Path) -> None:
    """Write the newest snapshot to a new folder. Raises NotFound, Conflict and StoreError."""
    if key is None:
        raise NotFound(
            "The store has no files of the conversation.",
            "What it works on is in its workspace, which `perdure status` names.",
        )
    parent = await asyncio.to_thread(_make_parent, target)
    with tempfile.TemporaryDirectory(prefix=".perdure-", dir=parent) as scratch:
        folder = Path(scratch) / "files"
        await restore(log.store, key, folder)
        await asyncio.to_thread(folder.rename, target)


def _make_parent(target: Path) -> Path:
    if target.exists():
        raise Conflict(f"There is {target} already.", "Name a folder that is not there yet.")
    parent = target.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    return parent


def describe_change(change: FileChange) -> str:
    """Describe a change in a line, such as `changed  src/a.py +12 -3`."""
    counts = [f"+{change.added}"] * bool(change.added) + [f"-{change.removed}"] * bool(
        change.removed
    )
    return " ".join([f"{change.kind:<7} ", *([change.path, *counts])])


async def print_result_and_changes(
    conversation: Conversation, state: State, view: TurnView, after: int = -1
) -> int:
    """Print the end of a turn, and on stderr which files changed after slot `after`."""
    changes = await read_workspace_changes(conversation.log, after)
    summary = changes.summarize()
    if not view.answer_only:
        _note_changes(conversation.id, changes, summary)
    files_changed = [asdict(change) for change in summary]
    return await print_result(conversation, state, view, files_changed=files_changed)


def _note_changes(
    conversation_id: str, changes: WorkspaceChanges, summary: list[FileChange]
) -> None:
    for line in _change_lines(conversation_id, summary):
        note(line)
    for fault in changes.faults:
        note(fault, "yellow")


def _change_lines(conversation_id: str, summary: list[FileChange]) -> Iterator[str]:
    yield from map(describe_change, summary[:MAX_NOTED_CHANGES])
    if (more := len(summary) - MAX_NOTED_CHANGES) > 0:
        yield f"... and {more} more: `perdure diff {conversation_id}`"
