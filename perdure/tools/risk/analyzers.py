"""The analyzers that tell the risk of an action.

`rules` judge by the text alone: shell commands, paths and the kind of the action.
"""

import logging
import re
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import PurePath
from typing import cast, get_args

from perdure.agent.calls.risk import Analyze, model_risk
from perdure.events.actions import FileEditorAction, MCPToolAction, TerminalAction
from perdure.events.risk import Risk
from perdure.events.tools import ActionEvent
from perdure.references import BadReference, import_reference, is_reference
from perdure.tools.apply_patch import APPLY_PATCH
from perdure.tools.editing.patch import Delete, PatchError, Update, parse_patch
from perdure.tools.risk.finding import HARMLESS, HOME, Finding, escape_marks, medium, worst
from perdure.tools.risk.paths import Paths
from perdure.tools.risk.shell import judge_script

logger = logging.getLogger(__name__)

_KEYS = re.compile(r"C-.|\^.|y|n|yes|no|q|:q!?|\d*|", re.IGNORECASE)
_COMMAND_ARGUMENTS = ("command", "cmd", "script", "shell_command", "bash", "code")
_UNKNOWN_TOOL = Finding("UNKNOWN", "Nobody knows what this tool does.")


def load_analyzers(
    names: tuple[str, ...], workspace: PurePath, read_only_names: Collection[str]
) -> list[tuple[str, Analyze]]:
    """The analyzers by name: `model`, `rules`, or `module:attribute` for one of your own.

    One that cannot be found takes every action for HIGH. What an analyzer raises is the caller's
    to take for HIGH as well.
    """
    return [(name, _analyzer(name, workspace, read_only_names)) for name in names]


def _analyzer(name: str, workspace: PurePath, read_only: Collection[str]) -> Analyze:
    match name:
        case "model":
            return model_risk
        case "rules":
            return lambda event: assess_by_rules(event, workspace, event.tool_name in read_only)
    try:
        return partial(_checked, name, load_analyzer(name))
    except (Exception, SystemExit) as error:
        # Another's code may raise anything; whatever it is, no action goes by unjudged.
        logger.error(
            "Security analyzer %r cannot be used, so every action counts as HIGH: %s: %s",
            *(name, type(error).__name__, error),
        )
        return lambda _: "HIGH"


def load_analyzer(name: str) -> Analyze:
    """Load an analyzer of the user's. Raises BadReference."""
    if not is_reference(name):
        raise BadReference("name it `model`, `rules` or `module:attribute`")
    if not callable(analyze := import_reference(name)):
        raise BadReference(f"it is a {type(analyze).__name__}, not a function")
    return cast(Analyze, analyze)


def _checked(name: str, analyze: Analyze, event: ActionEvent) -> Risk:
    risk = analyze(event)
    if risk not in get_args(Risk):
        raise ValueError(f"Analyzer {name!r} must give one of {get_args(Risk)}, not {risk!r}.")
    return risk


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
