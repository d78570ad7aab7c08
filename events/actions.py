"""What an agent may ask a tool to do, as the log keeps it.

Where a tool of ours does the job of one of the OpenHands SDK's, its action has the same `kind` and
fields; any other tool's arguments travel as an `MCPToolAction`.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from events.base import Frozen

EditorCommand: TypeAlias = Literal["view", "create", "str_replace", "insert", "undo_edit"]


class TerminalAction(Frozen):
    """`timeout` is in seconds."""

    kind: Literal["TerminalAction"] = "TerminalAction"
    command: str
    is_input: bool = False
    timeout: float | None = None
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
    kind: Literal["FinishAction"] = "FinishAction"
    message: str


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
    | FileEditorAction
    | ThinkAction
    | FinishAction
    | TaskTrackerAction
    | MCPToolAction,
    Field(discriminator="kind"),
]
