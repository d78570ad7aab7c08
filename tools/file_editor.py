"""Looking at files and editing them, in the workspace only."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from events.actions import EditorCommand, FileEditorAction
from events.content import Content, TextContent, ToolAnnotations, ToolDefinition
from events.observations import FileEditorObservation
from sandbox.spot import Spot
from tools.arguments import schema_of, validated
from tools.editing import image
from tools.editing.edits import Edit, all_or_none, carried, content_of, last_edit
from tools.editing.rewrite import Rewritten, difference, inserted, replaced
from tools.editing.text_file import Text, decoded, load, read
from tools.listing import around, numbered, tree
from tools.tool import Context, Tool, ToolFailed
from tools.workspace import file_resource, inside, named, printable

DESCRIPTION = """\
View, create and edit text files in the workspace.

* `view` shows a file with numbered lines, or those of `view_range`; of a directory it lists what \
is in it, two levels deep, without hidden files; an image it shows.
* `create` writes a new file with `file_text`, and the directories it needs. It never overwrites.
* `str_replace` replaces `old_str` by `new_str`. `old_str` must be exactly what the file says, \
whitespace and indentation included but without the line numbers, and must occur only once: take \
some lines around the change into it.
* `insert` puts `new_str` as whole lines after line `insert_line`; 0 puts them first.
* `undo_edit` takes back the last edit that this tool made to the file; again, the one before it. \
A file that it created is removed.

View a file before you edit it. Paths are relative to the workspace; nothing outside of it can be \
reached.
"""

_NEEDED: dict[EditorCommand, tuple[str, ...]] = {
    "view": (),
    "create": ("file_text",),
    "str_replace": ("old_str",),
    "insert": ("insert_line", "new_str"),
    "undo_edit": (),
}


class FileEditorArguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    command: EditorCommand
    path: str = Field(description="A file or directory, relative to the workspace.")
    file_text: str | None = Field(default=None, description="For `create`: the whole content.")
    old_str: str | None = Field(
        default=None, description="For `str_replace`: the text to replace; occurs exactly once."
    )
    new_str: str | None = Field(
        default=None,
        description="For `str_replace`: what to put there, nothing if left out. For `insert`: the "
        "lines to insert.",
    )
    insert_line: int | None = Field(
        default=None, ge=0, description="For `insert`: the line after which to insert."
    )
    view_range: Annotated[list[int], Field(min_length=2, max_length=2)] | None = Field(
        default=None,
        description="For `view` of a file: first and last line, from 1; -1 as last means the end.",
    )


def parse(arguments: dict[str, Any]) -> FileEditorAction:
    take = validated(FileEditorArguments, arguments)
    for name in _NEEDED[take.command]:
        if getattr(take, name) is None:
            raise ValueError(f"`{name}` is missing: `{take.command}` needs it.")
    return FileEditorAction.model_validate(take.model_dump())


def touches(action: FileEditorAction) -> tuple[str, ...] | None:
    resource = file_resource(action.path)
    return (resource,) if resource else None


async def run(action: FileEditorAction, context: Context) -> FileEditorObservation:
    """Do it; what cannot be done is an observation with `is_error`."""
    exists = True
    try:
        spot = await asyncio.to_thread(inside, context.workspace, action.path)
        exists = await asyncio.to_thread(spot.exists)
        if not exists and action.command != "create":
            raise ToolFailed(f"`{action.path}` does not exist.")
        if action.command == "view":
            return _observed(action, spot, await asyncio.to_thread(_view, action, spot))
        if action.command == "undo_edit":
            return await _done(action, context, *await _undoing(action, context, spot))
        return await _done(action, context, *await asyncio.to_thread(_planned, action, spot))
    except ToolFailed as failure:
        reason = str(failure)
    except OSError as error:
        reason = f"`{action.path}`: {error.strerror or error}."
    return FileEditorObservation(
        command=action.command,
        path=action.path,
        prev_exist=exists,
        is_error=True,
        content=(TextContent(text=reason),),
    )


def _view(action: FileEditorAction, spot: Spot) -> Sequence[Content]:
    if spot.is_dir():
        if action.view_range:
            raise ToolFailed(f"`{action.path}` is a directory, so leave out `view_range`.")
        return (TextContent(text=tree(spot)),)
    if spot.is_file() and (kind := image.image_type(spot)):
        return image.shown(spot, action.path, kind)
    lines = read(spot, action.path).lines
    first, last = _range(action, len(lines))
    return (TextContent(text=numbered(lines, first, last) or "(the file is empty)"),)


def _range(action: FileEditorAction, count: int) -> tuple[int, int]:
    first, last = action.view_range or (1, -1)
    last = count if last == -1 else min(last, count)
    if action.view_range and not 1 <= first <= last:
        raise ToolFailed(
            f"`view_range` {list(action.view_range)} names no lines: `{action.path}` has {count}, "
            "counted from 1, and the first must not be after the last."
        )
    return first, last


def _planned(action: FileEditorAction, spot: Spot) -> tuple[Edit, str]:
    """The edit that the action asks for, and what there will be to say of it."""
    if action.command == "create":
        return _creation(action, spot)
    before = load(spot, action.path)
    made = _rewritten(action, decoded(before, action.path))
    edit = Edit(spot, action.path, before, made.text.encoded(action.path))
    return edit, f"Edited `{action.path}`; {_reading(made)}"


def _creation(action: FileEditorAction, spot: Spot) -> tuple[Edit, str]:
    assert action.file_text is not None
    if spot.exists():
        raise ToolFailed(
            f"`{action.path}` exists and `create` never overwrites: edit it with `str_replace` or "
            "`insert`, or choose another path."
        )
    text = Text(action.file_text)
    said = f"Created `{action.path}` with {len(text.lines)} lines."
    return Edit(spot, action.path, None, text.encoded(action.path)), said


def _rewritten(action: FileEditorAction, text: Text) -> Rewritten:
    if action.command == "str_replace":
        return replaced(text, action.old_str or "", action.new_str or "", action.path)
    assert action.insert_line is not None
    return inserted(text, action.insert_line, action.new_str or "", action.path)


def _reading(made: Rewritten) -> str:
    snippet = around(made.text.lines, made.first, made.last) or "(the file is empty)"
    return f"around the change it now reads:\n{snippet}"


async def _undoing(action: FileEditorAction, context: Context, spot: Spot) -> tuple[Edit, str]:
    """The edit that takes the last one back."""
    place, root = printable(spot.path), spot.root
    last = await last_edit(context.log, context.seq + 1, lambda it: printable(root / it) == place)
    if last is None:
        raise ToolFailed(f"There is no edit of `{action.path}` by this tool that could be undone.")
    now = await asyncio.to_thread(load, spot, action.path)
    if last.new_content is None or await content_of(context.log, last.new_content) != now:
        raise ToolFailed(
            f"`{action.path}` has changed since its last edit by this tool, so that cannot be "
            "undone: view it, and edit it instead."
        )
    if not last.prev_exist:
        said = f"Took back the creation of `{action.path}`: it is gone."
        return Edit(spot, action.path, now, None), said
    if last.old_content is None:
        raise ToolFailed(f"What `{action.path}` said before its last edit is not on record.")
    then = await content_of(context.log, last.old_content)
    made = difference(decoded(now, action.path), decoded(then, action.path))
    said = f"Took back the last edit of `{action.path}` (`{last.command}`); {_reading(made)}"
    return Edit(spot, action.path, now, then), said


async def _done(
    action: FileEditorAction, context: Context, edit: Edit, said: str
) -> FileEditorObservation:
    # Kept before it is done: what a store that is away keeps off the record does not happen.
    old = await carried(edit.before, context.keep)
    new = await carried(edit.after, context.keep)
    await asyncio.to_thread(all_or_none, (edit,))
    told = _observed(action, edit.spot, (TextContent(text=said),))
    return told.model_copy(
        update={
            "prev_exist": edit.before is not None,
            "old_content": old,
            "new_content": new,
        }
    )


def _observed(
    action: FileEditorAction, spot: Spot, content: Sequence[Content]
) -> FileEditorObservation:
    return FileEditorObservation(command=action.command, path=named(spot), content=tuple(content))


FILE_EDITOR = Tool(
    definition=ToolDefinition(
        name="file_editor",
        description=DESCRIPTION,
        parameters=schema_of(FileEditorArguments),
        annotations=ToolAnnotations(
            title="File editor",
            readOnlyHint=False,
            destructiveHint=True,
            idempotentHint=False,
            openWorldHint=False,
        ),
    ),
    parse=parse,
    run=run,
    touches=touches,
)
