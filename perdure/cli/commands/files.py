"""Commands that show the files of a conversation, and what it changed."""

import asyncio
from collections.abc import Iterator
from dataclasses import asdict

from perdure.agent.loop.state import State
from perdure.cli.declarations import conversations
from perdure.cli.environment import find_environment, open_log
from perdure.cli.follow import TurnView, print_result
from perdure.cli.options import Format
from perdure.cli.output import note, print_list, show, show_result
from perdure.cli.rendering import log_pages
from perdure.cli.workspace_files import open_changes, open_files
from perdure.cli.workspaces import describe_workspace
from perdure.client.file_change import Changes, FileChange
from perdure.client.protocol import ConversationHandle
from perdure.storage.log.state import read_state

MAX_NOTED_CHANGES = 20
"""Changed files that are named after a run."""


async def diff(options: conversations.Diff) -> None:
    log = await open_log(options.conversation_id)
    await log_pages.require_conversation(log)
    changes = await open_changes(options.conversation_id, options.after)
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
    kept = await open_files(options.conversation_id)
    if options.copy is not None:
        await kept.copy(options.copy)
        fields = {"conversation_id": log.conversation_id, "copy": str(options.copy)}
        show_result(fields, options.output, str(options.copy))
        return
    settings, state = (await find_environment()).settings, await read_state(log)
    directory = state.spec.workspace if state.spec else None
    note(f"workspace  {describe_workspace(settings, log.conversation_id, directory, log.user_id)}")
    sizes = await kept.sizes()
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


def describe_change(change: FileChange) -> str:
    """Describe a change in a line, such as `changed  src/a.py +12 -3`."""
    counts = [f"+{change.added}"] * bool(change.added) + [f"-{change.removed}"] * bool(
        change.removed
    )
    return " ".join([f"{change.kind:<7} ", *([change.path, *counts])])


async def print_result_and_changes(
    conversation: ConversationHandle, state: State, view: TurnView, after: int = -1
) -> int:
    """Print the end of a turn, and on stderr which files changed after slot `after`."""
    changes = await conversation.changes(after)
    summary = changes.summarize()
    if not view.answer_only:
        _note_changes(conversation.id, changes, summary)
    files_changed = [asdict(change) for change in summary]
    return await print_result(conversation, state, view, files_changed=files_changed)


def _note_changes(conversation_id: str, changes: Changes, summary: list[FileChange]) -> None:
    for line in _change_lines(conversation_id, summary):
        note(line)
    for fault in changes.faults:
        note(fault, "yellow")


def _change_lines(conversation_id: str, summary: list[FileChange]) -> Iterator[str]:
    yield from map(describe_change, summary[:MAX_NOTED_CHANGES])
    if (more := len(summary) - MAX_NOTED_CHANGES) > 0:
        yield f"... and {more} more: `perdure diff {conversation_id}`"
