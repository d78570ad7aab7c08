"""How dangerous an action is by fixed rules: its shell commands, its paths, its kind.

Nothing is looked at but the action's text: no file, no link, no environment.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any

from events.actions import FileEditorAction, MCPToolAction, TerminalAction
from events.risk import Risk
from events.tools import ActionEvent
from tools.apply_patch import APPLY_PATCH
from tools.editing.patch import Delete, PatchError, Update, parsed
from tools.risk.finding import HARMLESS, Finding, medium, worst
from tools.risk.marks import HOME, unmarked
from tools.risk.places import Places, deleting, reading, writing
from tools.risk.shell import read

_KEYS = re.compile(r"C-.|\^.|y|n|yes|no|q|:q!?|\d*|", re.IGNORECASE)
_COMMANDS = ("command", "cmd", "script", "shell_command", "bash", "code")
_UNTOLD = Finding("UNKNOWN", "Nobody knows what this tool does.")


def rules(event: ActionEvent, workspace: PurePath, read_only: bool) -> Risk:
    """The risk of an action; `read_only` says that its tool changes nothing."""
    return judge(event, workspace, read_only).risk


def judge(event: ActionEvent, workspace: PurePath, read_only: bool) -> Finding:
    """The worst that the rules find, with the reason. `workspace` is absolute."""
    root = workspace.as_posix()
    match event.action:
        case TerminalAction() as action:
            return worst(_terminal(action, root))
        case FileEditorAction() as action:
            return worst(_editor(action, Places(root, (root,))))
        case MCPToolAction(data={"patch": str(patch)}) if event.tool_name == APPLY_PATCH.name:
            return worst(_patch(patch, Places(root, (root,))))
        case MCPToolAction() as action if not read_only:
            found = worst(_tool(action.data, root))
            return found if found.risk != "LOW" else _UNTOLD
        case _:
            return HARMLESS


def _terminal(action: TerminalAction, root: str) -> Iterator[Finding]:
    text = unmarked(action.command)
    if not action.is_input:
        yield from read(text, root)
    elif not _KEYS.fullmatch(text.strip()):
        yield medium("It types into a program that is running.")
        yield from read(text, root)


def _editor(action: FileEditorAction, places: Places) -> Iterator[Finding]:
    path = unmarked(action.path)
    name = HOME + path[1:] if path == "~" or path.startswith("~/") else path
    yield from reading(places, name)
    if action.command != "view":
        yield from writing(places, name)
    elif any(places.kind(path) in ("outside", "temporary") for path in places.resolved(name)):
        yield medium("It looks at a file outside the workspace.")


def _patch(patch: str, places: Places) -> Iterator[Finding]:
    try:
        changes = parsed(unmarked(patch))
    except PatchError:
        return  # the tool will refuse it as well
    for change in changes:
        yield from writing(places, change.path)
        if isinstance(change, Update) and change.move_to is not None:
            yield from writing(places, change.move_to)
        if isinstance(change, Delete):
            yield from deleting(places, change.path, recursive=False)


def _tool(data: dict[str, Any], root: str) -> Iterable[Finding]:
    """What another's tool is told to run, where it is told in the usual words."""
    for name in _COMMANDS:
        if isinstance(value := data.get(name), str):
            yield from read(unmarked(value), root)
