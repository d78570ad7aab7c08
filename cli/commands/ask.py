"""`perdure ask`: a question beside the task."""

from typing import Annotated

import typer

from cli.message import message_of
from cli.output import Format, Output, note, show, show_json
from cli.performing import ConversationId, command_app, perform
from cli.stack import place
from client import ask as asides
from client.client import Client

app = command_app()


@app.command()
def ask(
    conversation_id: ConversationId,
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="What to ask; - reads it from stdin.")
    ],
    timeout: Annotated[
        float | None, typer.Option(help="Seconds to wait; then the question is given up.", min=0)
    ] = None,
    output: Output = Format.text,
) -> None:
    """Ask an agent something beside its task; nothing of it is kept.

    It answers from what it knows by now, with no tool, also while it works, waits or is closed.
    """
    perform(_ask(conversation_id, question, timeout, output), output)


async def _ask(
    conversation_id: str,
    question: str,
    timeout: float | None,  # noqa: ASYNC109 - of the person's, told by an exit code of its own
    output: Format,
) -> None:
    said = message_of(question)
    client = await Client.connect((await place()).settings)
    answer = await asides.ask(client, conversation_id, said.text, timeout)
    if output is not Format.text:
        usage = answer.usage.model_dump(exclude_defaults=True)
        fields = {"conversation_id": conversation_id, "answer": answer.text, "usage": usage}
        show_json(fields, output)
        return
    show(answer.text)
    tokens = answer.usage.prompt_tokens + answer.usage.completion_tokens
    note(f"({tokens:,} tokens, ${answer.usage.cost:.4f})")
