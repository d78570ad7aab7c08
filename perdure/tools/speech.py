"""The `think` and `finish` tools, which only record a text."""

from pydantic import Field

from perdure.events.actions import FinishAction, ThinkAction
from perdure.events.content import TextContent, ToolAnnotations, ToolDefinition
from perdure.events.observations import FinishObservation, ThinkObservation
from perdure.tools.arguments import Arguments, json_schema, validate_arguments
from perdure.tools.tool import Context, Tool

THINK_DESCRIPTION = """\
Write a thought down. It changes nothing and finds out nothing; it only goes on record.

Use it before a decision that is hard to take back: to compare ways of mending a bug, to plan a \
change of many steps, or to make sense of a result that you did not expect.
"""

FINISH_DESCRIPTION = """\
End your turn with a report to the user, when the task is done or when you cannot go on.

Say what you did and how you checked it, what is left to do or went wrong, and what you need to \
know from the user, if anything.
"""


class ThinkArguments(Arguments):
    thought: str = Field(description="The thought.")


class FinishArguments(Arguments):
    message: str = Field(description="The report, as the user will read it.")


async def think(action: ThinkAction, context: Context) -> ThinkObservation:  # noqa: ARG001
    return ThinkObservation(content=(TextContent(text="Your thought has been logged."),))


async def finish(action: FinishAction, context: Context) -> FinishObservation:  # noqa: ARG001
    return FinishObservation(content=(TextContent(text=action.message),))


_HARMLESS = ToolAnnotations(
    readOnlyHint=True, destructiveHint=False, idempotentHint=True, openWorldHint=False
)


def _define(description: str, arguments: type[Arguments], title: str) -> ToolDefinition:
    return ToolDefinition(
        name=title.lower(),
        description=description,
        parameters=json_schema(arguments),
        annotations=_HARMLESS.model_copy(update={"title": title}),
    )


THINK = Tool(
    _define(THINK_DESCRIPTION, ThinkArguments, "Think"),
    lambda arguments: ThinkAction(thought=validate_arguments(ThinkArguments, arguments).thought),
    think,
)
FINISH = Tool(
    _define(FINISH_DESCRIPTION, FinishArguments, "Finish"),
    lambda arguments: FinishAction(message=validate_arguments(FinishArguments, arguments).message),
    finish,
)
