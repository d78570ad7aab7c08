"""Changing several files by one patch, all of them or none."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from events.actions import MCPToolAction
from sandbox.spot import Spot
from tools.editing.edits import Edit, all_or_none
from tools.editing.patch import Add, Change, Delete, PatchError, Update, parsed
from tools.editing.patched import patched
from tools.editing.text_file import Text, decoded, load
from tools.function import tool, tool_from
from tools.tool import Context, ToolFailed
from tools.workspace import file_resource, inside, printable


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
        changes = parsed(patch)
    except PatchError as error:
        raise ToolFailed(str(error)) from error
    return await asyncio.to_thread(_applied, changes, context.workspace)


@dataclass(frozen=True)
class Plan:
    """What one change of the patch comes to, and how it is told."""

    edits: tuple[Edit, ...]
    said: str


def _applied(changes: Sequence[Change], workspace: Path) -> str:
    plans, wrong = [], []
    for change in changes:
        try:
            plans.append(_plan(change, workspace))
        except (ToolFailed, PatchError) as error:
            wrong.append(str(error))
        except OSError as error:
            wrong.append(f"`{printable(change.path)}`: {error.strerror or error}.")
    edits = [edit for plan in plans for edit in plan.edits]
    wrong.extend(_twice(edits))
    if wrong:
        raise ToolFailed("\n".join(["Nothing was changed.", *wrong]))
    try:
        all_or_none(edits)
    except ToolFailed as failure:
        raise ToolFailed(f"Nothing was changed.\n{failure}") from failure
    return "\n".join(["Done:", *(plan.said for plan in plans)])


def _plan(change: Change, workspace: Path) -> Plan:
    spot = inside(workspace, change.path)
    match change:
        case Add():
            _check_free(spot, change.path)
            edit = Edit(spot, change.path, None, Text(change.body).encoded(change.path))
            return Plan((edit,), f"A {change.path}")
        case Delete():
            before = _own(workspace, change.path, spot)
            return Plan((Edit(spot, change.path, before, None),), f"D {change.path}")
        case Update():
            return _update(change, workspace, spot)


def _update(change: Update, workspace: Path, spot: Spot) -> Plan:
    before = _existing(spot, change.path)
    text = decoded(before, change.path)
    made = patched(text.body, change.hunks, change.path)
    after = text.with_body(made.body).encoded(change.path)
    hunks = ", ".join(map(str, made.loose))
    said = f" (hunk {hunks}: found with other whitespace or signs, so check it)" if hunks else ""
    edit = Edit(spot, change.path, before, after)
    if change.move_to is None:
        return Plan((edit,), f"M {change.path}{said}")
    _own(workspace, change.path, spot)
    target = inside(workspace, change.move_to)
    _check_free(target, change.move_to)
    moved = Edit(target, change.move_to, None, after, mode=spot.mode())
    gone = replace(edit, after=None)
    return Plan((moved, gone), f"R {change.path} -> {change.move_to}{said}")


def _check_free(spot: Spot, name: str) -> None:
    if spot.exists():
        raise ToolFailed(f"`{printable(name)}` exists already: update it, or choose another path.")


def _existing(spot: Spot, name: str) -> bytes:
    if not spot.exists():
        raise ToolFailed(f"`{printable(name)}` does not exist: add it, or name another file.")
    return load(spot, name)


def _own(workspace: Path, name: str, spot: Spot) -> bytes:
    """The content of a file that is to go: a link to it must not take it along."""
    if (workspace / name).is_symlink():
        raise ToolFailed(f"`{printable(name)}` is a symbolic link: name the file that it leads to.")
    return _existing(spot, name)


def _twice(edits: Sequence[Edit]) -> Iterator[str]:
    seen: set[Spot] = set()
    for edit in edits:
        if edit.spot in seen:
            yield f"`{printable(edit.name)}` is named twice: put all of its hunks into one update."
        seen.add(edit.spot)


def touches(action: MCPToolAction) -> tuple[str, ...] | None:
    """The files that the patch names, unless it cannot be told."""
    try:
        changes = parsed(str(action.data.get("patch")))
    except PatchError:
        return None
    moves = (change.move_to for change in changes if isinstance(change, Update) and change.move_to)
    named = [file_resource(name) for name in (*(change.path for change in changes), *moves)]
    found = tuple(dict.fromkeys(name for name in named if name is not None))
    return None if None in named else found


APPLY_PATCH = replace(tool_from(apply_patch), touches=touches)
