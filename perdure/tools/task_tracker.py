"""The `task_tracker` tool: a list of tasks, stored in the conversation's log only."""

from contextlib import aclosing
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from perdure.events.actions import TaskItem, TaskTrackerAction
from perdure.events.content import TextContent, ToolAnnotations, ToolDefinition
from perdure.events.observations import TaskTrackerObservation
from perdure.tools.arguments import Arguments, json_schema, validate_arguments
from perdure.tools.history import read_newest_first
from perdure.tools.tool import Context, Tool

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
    """A task; unknown fields that a model adds are ignored."""

    model_config = ConfigDict(extra="ignore")

    title: str = Field(description="What is to be done, in a few words.")
    notes: str = Field(default="", description="Details.")
    status: Literal["todo", "in_progress", "done"] = "todo"


class TaskTrackerArguments(Arguments):
    command: Literal["view", "plan"] = "view"
    task_list: list[Task] | None = Field(
        default=None, description="For `plan`: the whole list, in order; an empty one clears it."
    )


def parse(arguments: dict[str, Any]) -> TaskTrackerAction:
    values = validate_arguments(TaskTrackerArguments, arguments)
    if values.command == "plan" and values.task_list is None:
        raise ValueError("`task_list` is missing: `plan` needs it.")
    tasks = values.task_list if values.command == "plan" and values.task_list else []
    items = tuple(TaskItem.model_validate(task.model_dump()) for task in tasks)
    return TaskTrackerAction(command=values.command, task_list=items)


async def run(action: TaskTrackerAction, context: Context) -> TaskTrackerObservation:
    """Return an observation that carries the whole list: the newest one is the current list."""
    if action.command == "plan":
        tasks = action.task_list
        text = f"Task list has been updated with {len(tasks)} item(s)."
    else:
        tasks = await _load_tasks(context)
        text = render_tasks(tasks) or 'No task list found. Use the "plan" command to create one.'
    content = (TextContent(text=text),)
    return TaskTrackerObservation(command=action.command, task_list=tasks, content=content)


async def _load_tasks(context: Context) -> tuple[TaskItem, ...]:
    newest_first = read_newest_first(context.log, TaskTrackerObservation, context.seq + 1)
    async with aclosing(newest_first) as observations:
        async for observation in observations:
            if not observation.is_error:
                return observation.task_list
    return ()


def render_tasks(tasks: tuple[TaskItem, ...]) -> str:
    """Render the list for the model; an empty list gives an empty text."""
    rows = []
    for number, task in enumerate(tasks, 1):
        notes = f"\n   {task.notes}" if task.notes else ""
        rows.append(f"{number}. {_ICONS[task.status]} {task.title}{notes}")
    return "\n\n".join(["# Task List", *rows]) if rows else ""


TASK_TRACKER = Tool(
    definition=ToolDefinition(
        name="task_tracker",
        description=DESCRIPTION,
        parameters=json_schema(TaskTrackerArguments),
        annotations=ToolAnnotations(
            title="Task tracker", destructiveHint=False, idempotentHint=True, openWorldHint=False
        ),
    ),
    parse=parse,
    run=run,
    resources=lambda _: ("task_list",),
)
