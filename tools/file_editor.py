"""Looking at files and editing them, in the workspace only."""

import asyncio
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from events.actions import FileEditorAction
from events.content import TextContent, ToolAnnotations, ToolDefinition
from events.observations import FileEditorObservation
from tools.arguments import schema_of, validated
from tools.listing import around, numbered, tree
from tools.text_file import Text, lines_of, read, write
from tools.tool import Context, Tool, ToolFailed
from tools.workspace import inside, printable

DESCRIPTION = """\
View, create and edit UTF-8 text files in the workspace.

* `view` shows a file with numbered lines, or those of `view_range`; of a directory it lists what \
is in it, two levels deep, without hidden files.
* `create` writes a new file with `file_text`, and the directories it needs. It never overwrites.
* `str_replace` replaces `old_str` by `new_str`. `old_str` must be exactly what the file says, \
whitespace and indentation included but without the line numbers, and must occur only once: take \
some lines around the change into it.
* `insert` puts `new_str` as whole lines after line `insert_line`; 0 puts them first.

View a file before you edit it. Paths are relative to the workspace; nothing outside of it can be \
reached.
"""

MOST_KEPT = 32 * 1024
"""Bytes of a file's content that an observation carries; a longer one is left out of it."""

_NEEDED = {
    "view": (),
    "create": ("file_text",),
    "str_replace": ("old_str",),
    "insert": ("insert_line", "new_str"),
}
_MOST_PLACES = 20


class FileEditorArguments(BaseModel):
    """What the model is offered; `undo_edit` is not, as nothing remembers edits yet."""

    model_config = ConfigDict(extra="forbid")

    command: Literal["view", "create", "str_replace", "insert"]
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


async def run(action: FileEditorAction, context: Context) -> FileEditorObservation:
    """Do it; what cannot be done is an observation with `is_error`."""
    return await asyncio.to_thread(_run, action, context.workspace)


def _run(action: FileEditorAction, workspace: Path) -> FileEditorObservation:
    exists = True
    try:
        path = inside(workspace, action.path)
        exists = path.exists()
        if not exists and action.command != "create":
            raise ToolFailed(f"`{action.path}` does not exist.")
        return _DO[action.command](action, path)
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


def _view(action: FileEditorAction, path: Path) -> FileEditorObservation:
    if path.is_dir():
        if action.view_range:
            raise ToolFailed(f"`{action.path}` is a directory, so leave out `view_range`.")
        return _seen(action, path, tree(path))
    lines = read(path, action.path).lines
    first, last = _range(action, len(lines))
    return _seen(action, path, numbered(lines, first, last) or "(the file is empty)")


def _seen(action: FileEditorAction, path: Path, text: str) -> FileEditorObservation:
    return FileEditorObservation(
        command=action.command, path=printable(path), content=(TextContent(text=text),)
    )


def _range(action: FileEditorAction, count: int) -> tuple[int, int]:
    first, last = action.view_range or (1, -1)
    last = count if last == -1 else min(last, count)
    if action.view_range and not 1 <= first <= last:
        raise ToolFailed(
            f"`view_range` {list(action.view_range)} names no lines: `{action.path}` has {count}, "
            "counted from 1, and the first must not be after the last."
        )
    return first, last


def _create(action: FileEditorAction, path: Path) -> FileEditorObservation:
    assert action.file_text is not None
    if path.exists():
        raise ToolFailed(
            f"`{action.path}` exists and `create` never overwrites: edit it with `str_replace` or "
            "`insert`, or choose another path."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    text = Text(action.file_text)
    write(path, text)
    said = f"Created `{action.path}` with {len(text.lines)} lines."
    return _edited(action, path, None, text, said)


def _str_replace(action: FileEditorAction, path: Path) -> FileEditorObservation:
    text = read(path, action.path)
    old, new = text.meant(action.old_str or ""), text.meant(action.new_str or "")
    at = _only_place(action, text, old, new)
    after = text.with_body(text.body[:at] + new + text.body[at + len(old) :])
    write(path, after)
    first = text.body.count("\n", 0, at) + 1
    return _changed(action, path, text, after, first, first + new.count("\n"))


def _only_place(action: FileEditorAction, text: Text, old: str, new: str) -> int:
    if not old:
        raise ToolFailed("`old_str` is empty: give the text to replace, or use `insert`.")
    if old == new:
        raise ToolFailed("`old_str` and `new_str` are the same: nothing would change.")
    places = _places(text.body, old)
    if not places:
        raise ToolFailed(f"`old_str` does not occur in `{action.path}`. {_hint(text, old)}")
    if len(places) > 1:
        lines = sorted({text.body.count("\n", 0, at) + 1 for at in places})
        more = " and more" if len(places) == _MOST_PLACES else ""
        raise ToolFailed(
            f"`old_str` occurs more than once in `{action.path}`, at lines "
            f"{', '.join(map(str, lines))}{more}: take more of the lines around it into `old_str`."
        )
    return places[0]


def _places(body: str, old: str) -> list[int]:
    """Where `old` starts, overlaps included: which of two overlapping ones is meant is unknown."""
    places: list[int] = []
    at = body.find(old)
    while at >= 0 and len(places) < _MOST_PLACES:
        places.append(at)
        at = body.find(old, at + 1)
    return places


def _hint(text: Text, old: str) -> str:
    at = text.body.find(old.strip()) if old.strip() else -1
    if at >= 0:
        line = text.body.count("\n", 0, at) + 1
        return f"Line {line} has it with other whitespace around: copy it exactly."
    if text.newline == "\n" and "\r\n" in text.body:
        return "The file mixes line ends, so `old_str` needs \\r\\n where the file has it."
    return "View the file and copy the text exactly, without the line numbers."


def _insert(action: FileEditorAction, path: Path) -> FileEditorObservation:
    assert action.insert_line is not None
    assert action.new_str is not None
    text = read(path, action.path)
    lines, at = text.lines, action.insert_line
    if at > len(lines):
        raise ToolFailed(
            f"`insert_line` is {at}, but `{action.path}` has {len(lines)} lines: use 0 to "
            f"{len(lines)}."
        )
    new = lines_of(text.meant(action.new_str)) or [""]
    body = "\n".join([*lines[:at], *new, *lines[at:]])
    ended = not text.body or text.body.endswith("\n")
    after = text.with_body(body + "\n" if ended else body)
    write(path, after)
    return _changed(action, path, text, after, at + 1, at + len(new))


def _changed(
    action: FileEditorAction, path: Path, before: Text, after: Text, first: int, last: int
) -> FileEditorObservation:
    snippet = around(after.lines, first, last)
    said = f"Edited `{action.path}`; around the change it now reads:\n{snippet}"
    return _edited(action, path, before, after, said)


def _edited(
    action: FileEditorAction, path: Path, before: Text | None, after: Text, said: str
) -> FileEditorObservation:
    return FileEditorObservation(
        command=action.command,
        path=printable(path),
        prev_exist=before is not None,
        old_content=_kept(before),
        new_content=_kept(after),
        content=(TextContent(text=said),),
    )


def _kept(text: Text | None) -> str | None:
    return text.raw if text and len(text.raw.encode()) <= MOST_KEPT else None


_DO = {"view": _view, "create": _create, "str_replace": _str_replace, "insert": _insert}

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
)
