"""Hands a task to another agent, in a conversation of its own."""

import hashlib
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from events.actions import MCPToolAction
from events.content import ToolAnnotations, ToolDefinition
from events.observations import Observation
from tools.arguments import schema_of, validated
from tools.tool import Context, Tool, ToolFailed

NAME = "delegate"

LONGEST_TASK = 64 * 1024
"""Bytes of a task: it is the first message of a conversation."""

DESCRIPTION = """\
Hand a task to another agent and get its report.

* The other agent works in the same workspace with the same tools, but knows nothing of this \
conversation: write down everything it needs, and what its report must say.
* Several calls in one answer run side by side: then give each its own files to change.
* What it spends counts as yours. It cannot delegate in turn.
"""


class DelegateArguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    task: str = Field(min_length=1, description="What to do, complete in itself.")
    max_iterations: int | None = Field(
        default=None, ge=1, description="The other agent's answers at most."
    )
    max_budget: float | None = Field(
        default=None, gt=0, description="US dollars that it may spend at most."
    )


def parse(arguments: dict[str, Any]) -> MCPToolAction:
    take = validated(DelegateArguments, arguments)
    if (size := len(take.task.encode(errors="replace"))) > LONGEST_TASK:
        raise ValueError(
            f"`task` is {size:,} bytes long, and at most {LONGEST_TASK:,} can be handed over: "
            "put the material into a file of the workspace and name the file."
        )
    return MCPToolAction(data=take.model_dump(exclude_none=True))


async def run(action: MCPToolAction, context: Context) -> Observation:  # noqa: ARG001
    raise ToolFailed("A task can be handed over in a conversation with a workflow only.")


def touches(action: MCPToolAction) -> tuple[str, ...]:
    """Each task is a thing of its own: who delegates several at once wants them side by side."""
    return (f"task:{hashlib.sha256(str(action.data).encode()).hexdigest()[:16]}",)


DELEGATE = Tool(
    ToolDefinition(
        name=NAME,
        description=DESCRIPTION,
        parameters=schema_of(DelegateArguments),
        annotations=ToolAnnotations(),
    ),
    parse,
    run,
    touches,
)
