"""The end of a turn, with a report."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from events.actions import FinishAction
from events.content import TextContent, ToolAnnotations, ToolDefinition
from events.observations import FinishObservation
from tools.arguments import schema_of, validated
from tools.tool import Context, Tool

DESCRIPTION = """\
End your turn with a report to the user, when the task is done or when you cannot go on.

Say what you did and how you checked it, what is left to do or went wrong, and what you need to \
know from the user, if anything.
"""


class FinishArguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    message: str = Field(description="The report, as the user will read it.")


def parse(arguments: dict[str, Any]) -> FinishAction:
    return FinishAction(message=validated(FinishArguments, arguments).message)


async def run(action: FinishAction, context: Context) -> FinishObservation:  # noqa: ARG001
    return FinishObservation(content=(TextContent(text=action.message),))


FINISH = Tool(
    definition=ToolDefinition(
        name="finish",
        description=DESCRIPTION,
        parameters=schema_of(FinishArguments),
        annotations=ToolAnnotations(
            title="Finish",
            readOnlyHint=True,
            destructiveHint=False,
            idempotentHint=True,
            openWorldHint=False,
        ),
    ),
    parse=parse,
    run=run,
)
