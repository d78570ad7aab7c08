"""A place to think aloud."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from events.actions import ThinkAction
from events.content import TextContent, ToolAnnotations, ToolDefinition
from events.observations import ThinkObservation
from tools.arguments import schema_of, validated
from tools.tool import Context, Tool

DESCRIPTION = """\
Write a thought down. It changes nothing and finds out nothing; it only goes on record.

Use it before a decision that is hard to take back: to compare ways of mending a bug, to plan a \
change of many steps, or to make sense of a result that you did not expect.
"""


class ThinkArguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    thought: str = Field(description="The thought.")


def parse(arguments: dict[str, Any]) -> ThinkAction:
    return ThinkAction(thought=validated(ThinkArguments, arguments).thought)


async def run(action: ThinkAction, context: Context) -> ThinkObservation:  # noqa: ARG001
    return ThinkObservation(content=(TextContent(text="Your thought has been logged."),))


THINK = Tool(
    definition=ToolDefinition(
        name="think",
        description=DESCRIPTION,
        parameters=schema_of(ThinkArguments),
        annotations=ToolAnnotations(
            title="Think",
            readOnlyHint=True,
            destructiveHint=False,
            idempotentHint=True,
            openWorldHint=False,
        ),
    ),
    parse=parse,
    run=run,
)
