"""The arguments of tool calls as the log stores them.

A tool of ours that does the job of one in the OpenHands SDK has an action of the same `kind` and
fields; any other tool's arguments are stored as an `MCPToolAction`.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from perdure.events.base import Frozen

EditorCommand: TypeAlias = Literal["view", "create", "str_replace", "insert", "undo_edit"]


class TerminalAction(Frozen):
    """`timeout` is in seconds."""

    kind: Literal["TerminalAction"] = "TerminalAction"
    command: str
    is_input: bool = False
    timeout: float | None = None
    reset: bool = False


class IPythonRunCellAction(Frozen):
    """`timeout` is in seconds."""

    kind: Literal["IPythonRunCellAction"] = "IPythonRunCellAction"
    code: str
    timeout: float = 120.0
    reset: bool = False


class FileEditorAction(Frozen):
    """Lines count from 1; `view_range` is `[first, last]`, with -1 for the last line there is."""

    kind: Literal["FileEditorAction"] = "FileEditorAction"
    command: EditorCommand
    path: str
    file_text: str | None = None
    old_str: str | None = None
    new_str: str | None = None
    insert_line: int | None = None
    view_range: tuple[int, ...] | None = None


class ThinkAction(Frozen):
    kind: Literal["ThinkAction"] = "ThinkAction"
    thought: str


class FinishAction(Frozen):
    """A report; `outputs` are those that the agent's response schema asks for."""

    kind: Literal["FinishAction"] = "FinishAction"
    message: str
    outputs: dict[str, Any] | None = Field(default=None, exclude_if=lambda outputs: outputs is None)


class TaskItem(Frozen):
    title: str
    notes: str = ""
    status: Literal["todo", "in_progress", "done"] = "todo"


class TaskTrackerAction(Frozen):
    kind: Literal["TaskTrackerAction"] = "TaskTrackerAction"
    command: Literal["view", "plan"] = "view"
    task_list: tuple[TaskItem, ...] = ()


class MCPToolAction(Frozen):
    """The validated arguments of any other tool."""

    kind: Literal["MCPToolAction"] = "MCPToolAction"
    data: dict[str, Any] = Field(default_factory=dict)


Action: TypeAlias = Annotated[
    TerminalAction
    | IPythonRunCellAction
    | FileEditorAction
    | ThinkAction
    | FinishAction
    | TaskTrackerAction
    | MCPToolAction,
    Field(discriminator="kind"),
]
