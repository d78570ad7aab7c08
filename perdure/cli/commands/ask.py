"""`perdure ask`: ask an agent a question beside its task."""

from perdure.cli.environment import connect_client
from perdure.cli.message import read_text
from perdure.cli.options import Format
from perdure.cli.output import note, show, show_json
from perdure.client import ask as asides


async def execute(
    conversation_id: str,
    question: str,
    timeout: float | None,  # noqa: ASYNC109 - an option, with its own exit code
    output: Format,
) -> None:
    text = read_text(question)
    client = await connect_client()
    answer = await asides.ask(client, conversation_id, text, timeout)
    if output is not Format.text:
        usage = answer.usage.model_dump(exclude_defaults=True)
        fields = {"conversation_id": conversation_id, "answer": answer.text, "usage": usage}
        show_json(fields, output)
        return
    show(answer.text)
    tokens = answer.usage.prompt_tokens + answer.usage.completion_tokens
    note(f"({tokens:,} tokens, ${answer.usage.cost:.4f})")
