"""A list of tasks, kept in the conversation's log and nowhere else."""

from contextlib import aclosing
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from events.actions import TaskItem, TaskTrackerAction
from events.content import TextContent, ToolAnnotations, ToolDefinition
from events.observations import TaskTrackerObservation
from tools.arguments import schema_of, validated
from tools.history import newest_first
from tools.tool import Context, Tool

DESCRIPTION = """\
Keep a list of the tasks that your work consists of, for yourself and for those who follow it.

* `plan` puts `task_list` in the place of the list: send all tasks every time, those that are done \
as well.
* `view` shows the list. Use it when you are not sure what it says.

Use it for work of several steps, or when the user asks for several things. Leave it for a \
question or a single small change. Put a task `in_progress` before you begin it, only one at a \
time, and to `done` as soon as it is: not while tests fail or a part is missing. Add the tasks \
that you discover on the way, and leave out those that are no longer needed.
"""

_ICONS = {"todo": "⏳", "in_progress": "🔄", "done": "✅"}


class Task(BaseModel):
    """One task; what else a model says of it is passed over."""

    model_config = ConfigDict(extra="ignore")

    title: str = Field(description="What is to be done, in a few words.")
    notes: str = Field(default="", description="Details.")
    status: Literal["todo", "in_progress", "done"] = "todo"


class TaskTrackerArguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    command: Literal["view", "plan"] = "view"
    task_list: list[Task] | None = Field(
        default=None, description="For `plan`: the whole list, in order; an empty one clears it."
    )


def parse(arguments: dict[str, Any]) -> TaskTrackerAction:
    take = validated(TaskTrackerArguments, arguments)
    if take.command == "plan" and take.task_list is None:
        raise ValueError("`task_list` is missing: `plan` needs it.")
    tasks = take.task_list if take.command == "plan" and take.task_list else []
    items = tuple(TaskItem.model_validate(task.model_dump()) for task in tasks)
    return TaskTrackerAction(command=take.command, task_list=items)


def touches(action: TaskTrackerAction) -> tuple[str, ...]:  # noqa: ARG001
    return ("task_list",)


async def run(action: TaskTrackerAction, context: Context) -> TaskTrackerObservation:
    """Every observation carries the list as it is then, so that the newest one is the list."""
    if action.command == "plan":
        tasks = action.task_list
        said = f"Task list has been updated with {len(tasks)} item(s)."
    else:
        tasks = await _current(context)
        said = rendered(tasks) or 'No task list found. Use the "plan" command to create one.'
    return TaskTrackerObservation(
        command=action.command, task_list=tasks, content=(TextContent(text=said),)
    )


async def _current(context: Context) -> tuple[TaskItem, ...]:
    told = newest_first(context.log, TaskTrackerObservation, context.seq + 1)
    async with aclosing(told) as observations:
        async for seen in observations:
            if not seen.is_error:
                return seen.task_list
    return ()


def rendered(tasks: tuple[TaskItem, ...]) -> str:
    """The list as the model reads it; nothing of an empty one."""
    rows = [_row(number, task) for number, task in enumerate(tasks, 1)]
    return "\n\n".join(["# Task List", *rows]) if rows else ""


def _row(number: int, task: TaskItem) -> str:
    notes = f"\n   {task.notes}" if task.notes else ""
    return f"{number}. {_ICONS[task.status]} {task.title}{notes}"


TASK_TRACKER = Tool(
    definition=ToolDefinition(
        name="task_tracker",
        description=DESCRIPTION,
        parameters=schema_of(TaskTrackerArguments),
        annotations=ToolAnnotations(
            title="Task tracker",
            readOnlyHint=False,
            destructiveHint=False,
            idempotentHint=True,
            openWorldHint=False,
        ),
    ),
    parse=parse,
    run=run,
    touches=touches,
)
