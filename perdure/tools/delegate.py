"""The `delegate` tool, which hands a task to another agent in a conversation of its own."""

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Any

from pydantic import Field

from perdure.agent.spec import NamedAgent
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

NAMED_AGENTS = """
`agent` names the agent that is good for the task; without it, it is one like you:
"""


class DelegateArguments(Arguments):
    task: str = Field(min_length=1, description="What to do, complete in itself.")
    max_iterations: int | None = Field(
        default=None, ge=1, description="The other agent's answers at most."
    )
    max_budget: float | None = Field(
        default=None, gt=0, description="US dollars that it may spend at most."
    )


class NamedDelegateArguments(DelegateArguments):
    agent: str | None = Field(default=None, description="The name of the other agent.")


def parse(arguments: dict[str, Any], names: Sequence[str] = ()) -> MCPToolAction:
    model = NamedDelegateArguments if names else DelegateArguments
    values = validate_arguments(model, arguments)
    agent = getattr(values, "agent", None)
    if agent is not None and agent not in names:
        raise ValueError(f"there is no agent {agent!r}: use one of {', '.join(names)}, or none.")
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


def delegate_to(agents: Sequence[NamedAgent]) -> Tool:
    """Return the tool of an agent that may delegate to these by name."""
    lines = [f"* {it.name}: {it.description}".rstrip(": ") for it in agents]
    definition = ToolDefinition(
        name=DELEGATE_NAME,
        description=DESCRIPTION + NAMED_AGENTS + "\n".join(lines) + "\n",
        parameters=json_schema(NamedDelegateArguments),
    )
    return Tool(definition, partial(parse, names=[it.name for it in agents]), run, resources)
