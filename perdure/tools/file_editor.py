"""The `file_editor` tool: viewing, creating and editing text files in the workspace."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from perdure.events.actions import EditorCommand, FileEditorAction
from perdure.events.content import Content, TextContent, ToolAnnotations, ToolDefinition
from perdure.events.observations import FileEditorObservation
from perdure.sandbox.safe_path import SafePath
from perdure.tools.arguments import Arguments, json_schema, validate_arguments
from perdure.tools.editing import edits, text_file
from perdure.tools.listing import around, numbered, read_image_type, render_image, tree
from perdure.tools.tool import Context, Tool, ToolFailed
from perdure.tools.workspace import file_resource, printable, relative_name, resolve_in_workspace
from perdure.wording import count

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

_REQUIRED_ARGUMENTS: dict[EditorCommand, tuple[str, ...]] = {
    "view": (),
    "create": ("file_text",),
    "str_replace": ("old_str",),
    "insert": ("insert_line", "new_str"),
    "undo_edit": (),
}


class FileEditorArguments(Arguments):
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
    values = validate_arguments(FileEditorArguments, arguments)
    for name in _REQUIRED_ARGUMENTS[values.command]:
        if getattr(values, name) is None:
            raise ValueError(f"`{name}` is missing: `{values.command}` needs it.")
    return FileEditorAction.model_validate(values.model_dump())


def resources(action: FileEditorAction) -> tuple[str, ...] | None:
    resource = file_resource(action.path)
    return (resource,) if resource else None


async def run(action: FileEditorAction, context: Context) -> FileEditorObservation:
    """Execute the action; a failure is an observation with `is_error`."""
    exists = True
    try:
        path = await asyncio.to_thread(resolve_in_workspace, context.workspace, action.path)
        exists = await asyncio.to_thread(path.exists)
        if not exists and action.command != "create":
            raise ToolFailed(f"`{action.path}` does not exist.")
        if action.command == "view":
            content = await asyncio.to_thread(_view, action, path)
            return _observation(action, relative_name(path), content)
        if action.command == "undo_edit":
            plan = await _plan_undo(action, context, path)
        else:
            plan = await asyncio.to_thread(_plan_edit, action, path)
        return await _apply_edit(action, context, *plan)
    except ToolFailed as failure:
        reason = str(failure)
    except OSError as error:
        reason = f"`{action.path}`: {error.strerror or error}."
    observation = _observation(action, action.path, (TextContent(text=reason),))
    return observation.model_copy(update={"prev_exist": exists, "is_error": True})


def _view(action: FileEditorAction, path: SafePath) -> Sequence[Content]:
    if path.is_dir():
        if action.view_range:
            raise ToolFailed(f"`{action.path}` is a directory, so leave out `view_range`.")
        return (TextContent(text=tree(path)),)
    if path.is_file() and (kind := read_image_type(path)):
        return render_image(path, action.path, kind)
    lines = text_file.decode_text(text_file.load_file(path, action.path), action.path).lines
    first, last = _line_range(action, len(lines))
    return (TextContent(text=numbered(lines, first, last) or "(the file is empty)"),)


def _line_range(action: FileEditorAction, count: int) -> tuple[int, int]:
    first, last = action.view_range or (1, -1)
    last = count if last == -1 else min(last, count)
    if action.view_range and not 1 <= first <= last:
        raise ToolFailed(
            f"`view_range` {list(action.view_range)} names no lines: `{action.path}` has {count}, "
            "counted from 1, and the first must not be after the last."
        )
    return first, last


def _plan_edit(action: FileEditorAction, path: SafePath) -> tuple[edits.Edit, str]:
    """Return the edit that the action asks for, and its summary for the model."""
    if action.command == "create":
        return _plan_creation(action, path)
    before = text_file.load_file(path, action.path)
    text, new = text_file.decode_text(before, action.path), action.new_str or ""
    if action.command == "str_replace":
        rewrite = text_file.replace_text(text, action.old_str or "", new, action.path)
    else:
        rewrite = text_file.insert_lines(text, action.insert_line or 0, new, action.path)
    edit = edits.Edit(path, action.path, before, rewrite.text.encode(action.path))
    return edit, f"Edited `{action.path}`; {_describe_rewrite(rewrite)}"


def _plan_creation(action: FileEditorAction, path: SafePath) -> tuple[edits.Edit, str]:
    assert action.file_text is not None
    if path.exists():
        raise ToolFailed(
            f"`{action.path}` exists and `create` never overwrites: edit it with `str_replace` or "
            "`insert`, or choose another path."
        )
    text = text_file.Text(action.file_text)
    summary = f"Created `{action.path}` with {count(len(text.lines), 'line')}."
    return edits.Edit(path, action.path, None, text.encode(action.path)), summary


def _describe_rewrite(rewrite: text_file.Rewrite) -> str:
    snippet = around(rewrite.text.lines, rewrite.first, rewrite.last) or "(the file is empty)"
    return f"around the change it now reads:\n{snippet}"


async def _plan_undo(
    action: FileEditorAction, context: Context, path: SafePath
) -> tuple[edits.Edit, str]:
    """Return the edit that undoes the last one, and its summary for the model."""
    name, root = printable(path.path), path.root
    last = await edits.find_last_edit(
        context.log, context.seq + 1, lambda file_name: printable(root / file_name) == name
    )
    if last is None:
        raise ToolFailed(f"There is no edit of `{action.path}` by this tool that could be undone.")
    current = await asyncio.to_thread(text_file.load_file, path, action.path)
    recorded = last.new_content
    expected = None if recorded is None else await edits.load_content(context.log, recorded)
    if expected != current:
        raise ToolFailed(
            f"`{action.path}` has changed since its last edit by this tool, so that cannot be "
            "undone: view it, and edit it instead."
        )
    if not last.prev_exist:
        summary = f"Took back the creation of `{action.path}`: it is gone."
        return edits.Edit(path, action.path, current, None), summary
    if last.old_content is None:
        raise ToolFailed(f"What `{action.path}` said before its last edit is not on record.")
    previous = await edits.load_content(context.log, last.old_content)
    before, after = (text_file.decode_text(data, action.path) for data in (current, previous))
    rewrite = text_file.compare_texts(before, after)
    edit = edits.Edit(path, action.path, current, previous)
    summary = f"Took back the last edit of `{action.path}` (`{last.command}`)"
    return edit, f"{summary}; {_describe_rewrite(rewrite)}"


async def _apply_edit(
    action: FileEditorAction, context: Context, edit: edits.Edit, summary: str
) -> FileEditorObservation:
    # Stored before the edit: if the store is unavailable, nothing is edited.
    old = await edits.encode_content(edit.before, context.keep)
    new = await edits.encode_content(edit.after, context.keep)
    await asyncio.to_thread(edits.apply_edits, (edit,))
    observation = _observation(action, relative_name(edit.path), (TextContent(text=summary),))
    changes = {"prev_exist": edit.before is not None, "old_content": old, "new_content": new}
    return observation.model_copy(update=changes)


def _observation(
    action: FileEditorAction, path: str, content: Sequence[Content]
) -> FileEditorObservation:
    return FileEditorObservation(command=action.command, path=path, content=tuple(content))


FILE_EDITOR = Tool(
    definition=ToolDefinition(
        name="file_editor",
        description=DESCRIPTION,
        parameters=json_schema(FileEditorArguments),
        annotations=ToolAnnotations(title="File editor", openWorldHint=False),
    ),
    parse=parse,
    run=run,
    resources=resources,
)
