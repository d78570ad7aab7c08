"""The results of actions as the log stores them. Kinds and fields follow the OpenHands SDK."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from perdure.events.actions import EditorCommand, TaskItem
from perdure.events.base import Frozen
from perdure.events.content import Content


class ObservationBase(Frozen):
    """The result that the model is shown, and whether it is a failure."""

    content: tuple[Content, ...] = ()
    is_error: bool = False


class CmdOutputMetadata(Frozen):
    """The end of a command; `exit_code` is -1 while it runs."""

    exit_code: int = -1
    pid: int = -1
    working_dir: str | None = None
    prefix: str = ""
    suffix: str = ""


class TerminalObservation(ObservationBase):
    kind: Literal["TerminalObservation"] = "TerminalObservation"
    command: str | None = None
    exit_code: int | None = None
    timeout: bool = False
    metadata: CmdOutputMetadata = CmdOutputMetadata()
    full_output_save_dir: str | None = None


class IPythonRunCellObservation(ObservationBase):
    """A cell's result; `execution_count` is its number in the kernel, 1 being the first.

    `timeout` says that the cell was stopped at its time limit, `kernel_ended` that the kernel ended
    with it.
    """

    kind: Literal["IPythonRunCellObservation"] = "IPythonRunCellObservation"
    execution_count: int | None = None
    timeout: bool = False
    kernel_ended: bool = False
    full_output_save_dir: str | None = None


class FileEditorObservation(ObservationBase):
    """An edit; the contents are the file's text, or the key of its blob (`blobs/{sha256}`) if it is
    long or not UTF-8.
    """

    kind: Literal["FileEditorObservation"] = "FileEditorObservation"
    command: EditorCommand
    path: str | None = None
    prev_exist: bool = True
    old_content: str | None = None
    new_content: str | None = None


class ThinkObservation(ObservationBase):
    kind: Literal["ThinkObservation"] = "ThinkObservation"


class FinishObservation(ObservationBase):
    kind: Literal["FinishObservation"] = "FinishObservation"


class TaskTrackerObservation(ObservationBase):
    kind: Literal["TaskTrackerObservation"] = "TaskTrackerObservation"
    command: Literal["view", "plan"] = "view"
    task_list: tuple[TaskItem, ...] = ()


class MCPToolObservation(ObservationBase):
    """The result of any other tool."""

    kind: Literal["MCPToolObservation"] = "MCPToolObservation"
    tool_name: str


Observation: TypeAlias = Annotated[
    TerminalObservation
    | IPythonRunCellObservation
    | FileEditorObservation
    | ThinkObservation
    | FinishObservation
    | TaskTrackerObservation
    | MCPToolObservation,
    Field(discriminator="kind"),
]
