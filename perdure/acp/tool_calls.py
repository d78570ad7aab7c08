"""Tool calls as an editor shows them: what they do, to which files, and what they change."""

import json
from pathlib import PurePath, PurePosixPath
from typing import Any, TypeAlias

from perdure.gateway.turns.parts import Called

Fields: TypeAlias = dict[str, Any]

KINDS = {
    "terminal": "execute",
    "ipython": "execute",
    "file_editor": "edit",
    "apply_patch": "edit",
    "grep": "search",
    "glob": "search",
    "recall": "search",
    "think": "think",
}
"""The kinds of tools; that of all others is `other`."""

TITLES = {
    "terminal": "{command}",
    "ipython": "{code}",
    "file_editor": "{command} {path}",
    "grep": "grep {pattern}",
    "glob": "glob {pattern}",
}
"""What a call is shown as, by its arguments; the name of its tool by default."""

MAX_TITLE_CHARS = 120

PLAN_TOOL = "task_tracker"
PLAN_STATUSES = {"todo": "pending", "in_progress": "in_progress", "done": "completed"}


def read_arguments(call: Called) -> Fields:
    """Return the arguments of a call; none where a model has sent no JSON object."""
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def describe_call(call: Called, cwd: str) -> Fields:
    """Return the fields of a call that a person is shown before it has a result."""
    arguments = read_arguments(call)
    fields: Fields = {
        "toolCallId": call.call_id,
        "title": _find_title(call.tool_name, arguments),
        "kind": _find_kind(call.tool_name, arguments),
        "status": "pending",
        "rawInput": arguments,
    }
    path = arguments.get("path")
    if call.tool_name == "file_editor" and isinstance(path, str):
        fields["locations"] = [{"path": resolve(path, cwd)}]
    if (diff := find_diff(call, cwd)) is not None:
        fields["content"] = [diff]
    return fields


def find_diff(call: Called, cwd: str) -> Fields | None:
    """Return what a call of the editor changes, as its arguments have it."""
    arguments = read_arguments(call)
    path, command = arguments.get("path"), arguments.get("command")
    if call.tool_name != "file_editor" or not isinstance(path, str):
        return None
    old, new = {
        "create": (None, arguments.get("file_text")),
        "str_replace": (arguments.get("old_str"), arguments.get("new_str") or ""),
        "insert": ("", arguments.get("new_str")),
    }.get(str(command), (None, None))
    if not isinstance(new, str):
        return None
    fields: Fields = {"type": "diff", "path": resolve(path, cwd), "newText": new}
    return {**fields, "oldText": old} if isinstance(old, str) else fields


def find_plan(call: Called) -> list[Fields] | None:
    """Return the entries of the plan that a call has made; None if it is about something else."""
    arguments = read_arguments(call)
    tasks = arguments.get("task_list")
    if call.tool_name != PLAN_TOOL or arguments.get("command") != "plan":
        return None
    return [
        {
            "content": str(task.get("title", "")),
            "priority": "medium",
            "status": PLAN_STATUSES.get(str(task.get("status")), "pending"),
        }
        for task in (tasks if isinstance(tasks, list) else [])
        if isinstance(task, dict)
    ]


def resolve(path: str, cwd: str) -> str:
    """Make a path of the workspace one of the session's folder, which is absolute."""
    folder = PurePosixPath(cwd) if cwd.startswith("/") else PurePath(cwd)
    return str(folder / path)


def _find_kind(tool_name: str, arguments: Fields) -> str:
    if tool_name == "file_editor" and arguments.get("command") == "view":
        return "read"
    return KINDS.get(tool_name, "other")


def _find_title(tool_name: str, arguments: Fields) -> str:
    try:
        title = TITLES.get(tool_name, tool_name).format_map(arguments)
    except (KeyError, IndexError, ValueError):
        title = tool_name
    line = title.strip().partition("\n")[0] or tool_name
    return line if len(line) <= MAX_TITLE_CHARS else f"{line[: MAX_TITLE_CHARS - 1]}…"
