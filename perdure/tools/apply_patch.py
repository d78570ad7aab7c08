"""The `apply_patch` tool, which changes several files atomically."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from perdure.events.actions import MCPToolAction
from perdure.sandbox.safe_path import SafePath
from perdure.tools.editing.edits import Edit, apply_edits
from perdure.tools.editing.patch import Add, Change, Delete, PatchError, Update, parse_patch
from perdure.tools.editing.patched import apply_hunks
from perdure.tools.editing.text_file import Text, decode_text, load_file
from perdure.tools.function import tool, tool_from
from perdure.tools.tool import Context, ToolFailed
from perdure.tools.workspace import file_resource, printable, resolve_in_workspace


@tool(open_world=False)
async def apply_patch(
    context: Context,
    patch: Annotated[
        str, Field(description="All of it, from `*** Begin Patch` to `*** End Patch`.")
    ],
) -> str:
    """Create, change, move and delete files by one patch: all of it is done, or nothing.

    *** Begin Patch
    *** Update File: src/main.py
    *** Move to: src/start.py
    @@ class Server:
    @@     def start(self):
             self.open()
    -        self.wait()
    +        self.listen()
    *** Add File: notes.txt
    +Every line of a new file begins with a plus.
    *** Delete File: old.py
    *** End Patch

    * In an update a line that stays begins with a space, one that goes with `-`, one that comes \
with `+`. Give three lines that stay before and after each change, exactly as the file has them, \
without line numbers.
    * `@@` begins a hunk. Where the lines around do not say which place is meant, name the class \
or function after it: a whole line of the file. `*** End of File` after a hunk says that it is the \
end. Hunks stand in the order of the file.
    * `*** Move to:` may be left out. Paths are relative to the workspace.
    """
    try:
        changes = parse_patch(patch)
    except PatchError as error:
        raise ToolFailed(str(error)) from error
    return await asyncio.to_thread(_apply, changes, context.workspace)


def _apply(changes: Sequence[Change], workspace: Path) -> str:
    plans, errors = [], []
    for change in changes:
        try:
            plans.append(_plan_change(change, workspace))
        except (ToolFailed, PatchError) as error:
            errors.append(str(error))
        except OSError as error:
            errors.append(f"`{printable(change.path)}`: {error.strerror or error}.")
    edits = [edit for planned, _ in plans for edit in planned]
    errors.extend(_find_duplicates(edits))
    if errors:
        raise ToolFailed("\n".join(["Nothing was changed.", *errors]))
    try:
        apply_edits(edits)
    except ToolFailed as failure:
        raise ToolFailed(f"Nothing was changed.\n{failure}") from failure
    return "\n".join(["Done:", *(summary for _, summary in plans)])


def _plan_change(change: Change, workspace: Path) -> tuple[list[Edit], str]:
    """Return the edits of a change, and its summary for the model."""
    path = resolve_in_workspace(workspace, change.path)
    match change:
        case Add():
            _check_free(path, change.path)
            edit = Edit(path, change.path, None, Text(change.body).encode(change.path))
            return [edit], f"A {change.path}"
        case Delete():
            before = _load_for_removal(workspace, change.path, path)
            return [Edit(path, change.path, before, None)], f"D {change.path}"
        case Update():
            return _plan_update(change, workspace, path)


def _plan_update(change: Update, workspace: Path, path: SafePath) -> tuple[list[Edit], str]:
    before = _load_existing(path, change.path)
    text = decode_text(before, change.path)
    result = apply_hunks(text.body, change.hunks, change.path)
    after = text.with_body(result.body).encode(change.path)
    hunks = ", ".join(map(str, result.inexact_hunks))
    note = f" (hunk {hunks}: found with other whitespace or signs, so check it)" if hunks else ""
    edit = Edit(path, change.path, before, after)
    if change.move_to is None:
        return [edit], f"M {change.path}{note}"
    _load_for_removal(workspace, change.path, path)
    target = resolve_in_workspace(workspace, change.move_to)
    _check_free(target, change.move_to)
    creation = Edit(target, change.move_to, None, after, mode=path.mode())
    return [creation, replace(edit, after=None)], f"R {change.path} -> {change.move_to}{note}"


def _check_free(path: SafePath, name: str) -> None:
    if path.exists():
        raise ToolFailed(f"`{printable(name)}` exists already: update it, or choose another path.")


def _load_existing(path: SafePath, name: str) -> bytes:
    if not path.exists():
        raise ToolFailed(f"`{printable(name)}` does not exist: add it, or name another file.")
    return load_file(path, name)


def _load_for_removal(workspace: Path, name: str, path: SafePath) -> bytes:
    """Load a file that is to be removed; refuse a symlink, whose target would be removed."""
    if (workspace / name).is_symlink():
        raise ToolFailed(f"`{printable(name)}` is a symbolic link: name the file that it leads to.")
    return _load_existing(path, name)


def _find_duplicates(edits: Sequence[Edit]) -> Iterator[str]:
    paths: set[SafePath] = set()
    for edit in edits:
        if edit.path in paths:
            yield f"`{printable(edit.name)}` is named twice: put all of its hunks into one update."
        paths.add(edit.path)


def resources(action: MCPToolAction) -> tuple[str, ...] | None:
    """Return the files that the patch names; None if the patch or a name cannot be resolved."""
    try:
        changes = parse_patch(str(action.data.get("patch")))
    except PatchError:
        return None
    moves = (change.move_to for change in changes if isinstance(change, Update) and change.move_to)
    names = [file_resource(name) for name in (*(change.path for change in changes), *moves)]
    unique = tuple(dict.fromkeys(name for name in names if name is not None))
    return None if None in names else unique


APPLY_PATCH = replace(tool_from(apply_patch), resources=resources)
