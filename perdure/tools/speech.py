"""The tools that only record a text: a thought, the end of a turn, a wish for a smaller view."""

from pydantic import Field

from perdure.events.actions import FinishAction, MCPToolAction, ThinkAction
from perdure.events.content import TextContent, ToolAnnotations, ToolDefinition
from perdure.events.observations import FinishObservation, MCPToolObservation, ThinkObservation
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

REJECT_DESCRIPTION = """\
Refuse the task, and end your turn, where it must not or cannot be done by you: it would do harm, \
nobody allowed it, or it is not a task for this agent at all.

Say why, and what the user could do instead. If something is only unclear, ask; if you tried and \
it did not work, say so as you would of any other result.
"""

CONDENSE_DESCRIPTION = """\
Ask for a smaller view of this conversation before you go on, when much of what you see is of no \
use any more: long output that you have dealt with, a part of the task that is done.

Older events leave your view, and a summary may take their place; nothing is deleted. Write down \
first what you still need.
"""


CONDENSE_TOOL = "request_condensation"


class ThinkArguments(Arguments):
    thought: str = Field(description="The thought.")


class FinishArguments(Arguments):
    message: str = Field(description="The report, as the user will read it.")


class RejectArguments(Arguments):
    reason: str = Field(min_length=1, description="Why, as the user will read it.")


class CondenseArguments(Arguments):
    reason: str = Field(default="", description="What is of no use any more, in a few words.")


async def think(action: ThinkAction, context: Context) -> ThinkObservation:  # noqa: ARG001
    return ThinkObservation(content=(TextContent(text="Your thought has been logged."),))


async def finish(action: FinishAction, context: Context) -> FinishObservation:  # noqa: ARG001
    return FinishObservation(content=(TextContent(text=action.message),))


async def request_condensation(
    action: MCPToolAction,  # noqa: ARG001
    context: Context,  # noqa: ARG001
) -> MCPToolObservation:
    text = TextContent(text="Your view is made smaller before you are asked again, if it can be.")
    return MCPToolObservation(tool_name=CONDENSE_TOOL, content=(text,))


_HARMLESS = ToolAnnotations(
    readOnlyHint=True, destructiveHint=False, idempotentHint=True, openWorldHint=False
)


def _define(description: str, arguments: type[Arguments], title: str) -> ToolDefinition:
    return ToolDefinition(
        name=title.lower().replace(" ", "_"),
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
REJECT_TASK = Tool(
    _define(REJECT_DESCRIPTION, RejectArguments, "Reject task"),
    lambda arguments: FinishAction(message=validate_arguments(RejectArguments, arguments).reason),
    finish,
)
REQUEST_CONDENSATION = Tool(
    _define(CONDENSE_DESCRIPTION, CondenseArguments, "Request condensation"),
    lambda arguments: MCPToolAction(
        data=validate_arguments(CondenseArguments, arguments).model_dump()
    ),
    request_condensation,
)
