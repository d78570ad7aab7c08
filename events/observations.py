"""What came of an action, as the log keeps it. Kinds and fields follow the OpenHands SDK."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from events.actions import EditorCommand, TaskItem
from events.base import Frozen
from events.content import Content


class Observed(Frozen):
    """What the model is shown of a result, and whether it is a failure."""

    content: tuple[Content, ...] = ()
    is_error: bool = False


class CmdOutputMetadata(Frozen):
    """How a command ended; `exit_code` is -1 while it has not."""

    exit_code: int = -1
    pid: int = -1
    working_dir: str | None = None
    prefix: str = ""
    suffix: str = ""


class TerminalObservation(Observed):
    kind: Literal["TerminalObservation"] = "TerminalObservation"
    command: str | None = None
    exit_code: int | None = None
    timeout: bool = False
    metadata: CmdOutputMetadata = CmdOutputMetadata()
    full_output_save_dir: str | None = None


class FileEditorObservation(Observed):
    """`old_content` and `new_content` are the file's text, or the key of its blob
    (`blobs/{sha256}`) where it is long or not UTF-8."""

    kind: Literal["FileEditorObservation"] = "FileEditorObservation"
    command: EditorCommand
    path: str | None = None
    prev_exist: bool = True
    old_content: str | None = None
    new_content: str | None = None


class ThinkObservation(Observed):
    kind: Literal["ThinkObservation"] = "ThinkObservation"


class FinishObservation(Observed):
    kind: Literal["FinishObservation"] = "FinishObservation"


class TaskTrackerObservation(Observed):
    kind: Literal["TaskTrackerObservation"] = "TaskTrackerObservation"
    command: Literal["view", "plan"] = "view"
    task_list: tuple[TaskItem, ...] = ()


class MCPToolObservation(Observed):
    """The result of any other tool."""

    kind: Literal["MCPToolObservation"] = "MCPToolObservation"
    tool_name: str


Observation: TypeAlias = Annotated[
    TerminalObservation
    | FileEditorObservation
    | ThinkObservation
    | FinishObservation
    | TaskTrackerObservation
    | MCPToolObservation,
    Field(discriminator="kind"),
]
