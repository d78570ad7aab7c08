"""The `delegate` tool, which hands a task to another agent in a conversation of its own."""

import hashlib
from typing import Any

from pydantic import Field

from perdure.events.actions import MCPToolAction
from perdure.events.content import ToolDefinition
from perdure.events.observations import Observation
from perdure.tools.arguments import Arguments, json_schema, validate_arguments
from perdure.tools.tool import Context, Tool, ToolFailed

DELEGATE_NAME = "delegate"

MAX_TASK_BYTES = 64 * 1024
"""The task becomes the first message of a conversation."""

DESCRIPTION = """\
Hand a task to another agent and get its report.

* The other agent works in the same workspace with the same tools, but knows nothing of this \
conversation: write down everything it needs, and what its report must say.
* Several calls in one answer run side by side: then give each its own files to change.
* What it spends counts as yours. It cannot delegate in turn.
"""


class DelegateArguments(Arguments):
    task: str = Field(min_length=1, description="What to do, complete in itself.")
    max_iterations: int | None = Field(
        default=None, ge=1, description="The other agent's answers at most."
    )
    max_budget: float | None = Field(
        default=None, gt=0, description="US dollars that it may spend at most."
    )


def parse(arguments: dict[str, Any]) -> MCPToolAction:
    values = validate_arguments(DelegateArguments, arguments)
    if (size := len(values.task.encode(errors="replace"))) > MAX_TASK_BYTES:
        raise ValueError(
            f"`task` is {size:,} bytes long, and at most {MAX_TASK_BYTES:,} can be handed over: "
            "put the material into a file of the workspace and name the file."
        )
    return MCPToolAction(data=values.model_dump(exclude_none=True))


async def run(action: MCPToolAction, context: Context) -> Observation:  # noqa: ARG001
    raise ToolFailed("A task can be handed over in a conversation with a workflow only.")


def resources(action: MCPToolAction) -> tuple[str, ...]:
    """Name each task as a resource of its own, so that several delegations run side by side."""
    return (f"task:{hashlib.sha256(str(action.data).encode()).hexdigest()[:16]}",)


_SCHEMA = json_schema(DelegateArguments)
_DEFINITION = ToolDefinition(name=DELEGATE_NAME, description=DESCRIPTION, parameters=_SCHEMA)
DELEGATE = Tool(_DEFINITION, parse, run, resources)
