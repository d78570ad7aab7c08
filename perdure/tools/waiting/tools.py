"""The tools by which an agent waits: for a time, for a signal, for the answer of a person."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field

from perdure.agent.loop.signals import NAME_RULE, is_signal_name
from perdure.events.actions import MCPToolAction
from perdure.events.content import ToolAnnotations, ToolDefinition
from perdure.events.observations import Observation
from perdure.tools.arguments import Arguments, json_schema, validate_arguments
from perdure.tools.tool import Context, Tool, ToolFailed
from perdure.tools.waiting.times import WaitTimes

MAX_QUESTION_CHARS = 1_000
MAX_CHOICES = 10
MAX_CHOICE_CHARS = 100

WAIT_DESCRIPTION = """\
Wait until an instant, for a duration, or for a signal that somebody sends to this conversation by \
its name. With a signal and a time, whichever comes first ends the wait.

* It costs nothing, however long: days are fine. Use it in place of `sleep`.
* Nothing else of yours goes on meanwhile. A message of the user ends the wait early.
* A signal that came before you wait for it has been kept, and ends the wait at once; its data is \
in the result.
"""

ASK_DESCRIPTION = """\
Ask the user a question, and wait for the answer.

* Ask when you cannot go on without it, or before a choice that is the user's to make; say in the \
question what depends on it. Offer `choices` where there are few answers.
* The user may answer in other words than the choices.
* With `until` or `for` you go on without an answer after that time.
"""


class WaitArguments(WaitTimes):
    signal: str | None = Field(default=None, description=f"The name of a signal: {NAME_RULE}.")


class AskArguments(WaitTimes):
    question: str = Field(
        min_length=1, max_length=MAX_QUESTION_CHARS, description="The question, in a few sentences."
    )
    choices: list[Annotated[str, Field(min_length=1, max_length=MAX_CHOICE_CHARS)]] = Field(
        default=[],
        max_length=MAX_CHOICES,
        description="The answers to choose from, a few words each.",
    )


def parse_wait(arguments: dict[str, Any]) -> MCPToolAction:
    values = validate_arguments(WaitArguments, arguments)
    data = values.as_data()
    if values.signal is not None:
        if not is_signal_name(values.signal):
            raise ValueError(f"`signal`: {values.signal[:60]!r} is no name of one: {NAME_RULE}.")
        data["signal"] = values.signal
    if not data:
        raise ValueError("say what to wait for: `until` an instant, `for` a duration, or `signal`.")
    return MCPToolAction(data=data)


def parse_question(arguments: dict[str, Any]) -> MCPToolAction:
    values = validate_arguments(AskArguments, arguments)
    if not values.question.strip():
        raise ValueError("`question` is empty.")
    choices = [choice.strip() for choice in values.choices]
    if "" in choices or len(set(choices)) < len(choices):
        raise ValueError("`choices`: each one needs words of its own.")
    data: dict[str, Any] = {"question": values.question.strip(), **values.as_data()}
    return MCPToolAction(data={**data, "choices": choices} if choices else data)


async def run(action: MCPToolAction, context: Context) -> Observation:  # noqa: ARG001
    raise ToolFailed("Only a conversation with a workflow can wait.")


def _define(
    name: str,
    title: str,
    description: str,
    arguments: type[Arguments],
    parse: Callable[[dict[str, Any]], MCPToolAction],
) -> Tool:
    definition = ToolDefinition(
        name=name,
        description=description,
        parameters=json_schema(arguments),
        annotations=ToolAnnotations(
            title=title,
            readOnlyHint=True,
            destructiveHint=False,
            idempotentHint=True,
            openWorldHint=False,
        ),
        waits=True,
        suspends=True,
    )
    return Tool(definition, parse, run)


WAIT = _define("wait", "Wait", WAIT_DESCRIPTION, WaitArguments, parse_wait)
ASK_USER = _define("ask_user", "Ask the user", ASK_DESCRIPTION, AskArguments, parse_question)
