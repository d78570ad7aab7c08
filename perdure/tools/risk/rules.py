"""The rules that judge an action by its text alone: shell commands, paths and its kind."""

import re
import shlex
from collections.abc import Iterator
from pathlib import PurePath

from perdure.events.actions import (
    FileEditorAction,
    IPythonRunCellAction,
    MCPToolAction,
    TerminalAction,
)
from perdure.events.risk import Risk
from perdure.events.tools import ActionEvent
from perdure.tools.apply_patch import APPLY_PATCH
from perdure.tools.editing.patch import Delete, PatchError, Update, parse_patch
from perdure.tools.risk.finding import HARMLESS, HOME, Finding, escape_marks, medium, worst
from perdure.tools.risk.paths import Paths
from perdure.tools.risk.shell import judge_script

_KEYS = re.compile(r"C-.|\^.|y|n|yes|no|q|:q!?|\d*|", re.IGNORECASE)
_CELL_COMMAND = re.compile(r"^\s*(?:[\w,. ]+=\s*)?(?:!!?|%sx |%system )(.*)$", re.MULTILINE)
_SHELL_CELL = re.compile(r"\s*%%(?:bash|sh|script\b[^\n]*|!|sx|system)[^\n]*\n(.*)", re.DOTALL)
_COMMAND_ARGUMENTS = ("command", "cmd", "script", "shell_command", "bash", "code")
_UNKNOWN_TOOL = Finding("UNKNOWN", "Nobody knows what this tool does.")


def assess_by_rules(event: ActionEvent, workspace: PurePath, read_only: bool) -> Risk:
    """Tell the risk of an action; `read_only` says that its tool changes nothing."""
    return judge(event, workspace, read_only).risk


def judge(event: ActionEvent, workspace: PurePath, read_only: bool) -> Finding:
    """Return the worst finding of all rules. `workspace` is absolute."""
    root = workspace.as_posix()
    paths = Paths(root, root)
    match event.action:
        case TerminalAction() as action:
            return worst(_judge_terminal(action, root))
        case IPythonRunCellAction(code=code):
            return worst(_judge_cell(escape_marks(code), root))
        case FileEditorAction() as action:
            return worst(_judge_editor(action, paths))
        case MCPToolAction(data={"patch": str(patch)}) if event.tool_name == APPLY_PATCH.name:
            return worst(_judge_patch(patch, paths))
        case MCPToolAction(data=data) if not read_only:
            scripts = [data[name] for name in _COMMAND_ARGUMENTS if isinstance(data.get(name), str)]
            finding = worst(worst(judge_script(escape_marks(text), root)) for text in scripts)
            return finding if finding.risk != "LOW" else _UNKNOWN_TOOL
        case _:
            return HARMLESS


def _judge_terminal(action: TerminalAction, root: str) -> Iterator[Finding]:
    text = escape_marks(action.command)
    if not action.is_input:
        yield from judge_script(text, root)
    elif not _KEYS.fullmatch(text.strip()):
        yield medium("It types into a program that is running.")
        yield from judge_script(text, root)


def _judge_cell(code: str, root: str) -> Iterator[Finding]:
    """Judge a cell as Python, and its commands as those of a shell."""
    yield from judge_script(f"python -c {shlex.quote(code)}", root)
    scripts = [match[1] for match in _CELL_COMMAND.finditer(code)]
    if match := _SHELL_CELL.match(code):
        scripts.append(match[1])
    for script in scripts:
        yield from judge_script(script, root)


def _judge_editor(action: FileEditorAction, paths: Paths) -> Iterator[Finding]:
    path = escape_marks(action.path)
    name = HOME + path[1:] if path == "~" or path.startswith("~/") else path
    yield from paths.read(name)
    if action.command != "view":
        yield from paths.write(name)
    elif paths.kind(paths.resolve(name)) in ("outside", "temporary"):
        yield medium("It looks at a file outside the workspace.")


def _judge_patch(patch: str, paths: Paths) -> Iterator[Finding]:
    try:
        changes = parse_patch(escape_marks(patch))
    except PatchError:
        return  # the tool will refuse it as well
    for change in changes:
        yield from paths.write(change.path)
        if isinstance(change, Update) and change.move_to is not None:
            yield from paths.write(change.move_to)
        if isinstance(change, Delete):
            yield from paths.delete(change.path, recursive=False)
