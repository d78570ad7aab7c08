"""Commands that end the waits of agents: answers and signals."""

import json
from typing import Any

from perdure.cli.arguments import read_text
from perdure.cli.declarations import waiting
from perdure.cli.environment import connect_client, open_conversation
from perdure.cli.output import show_result
from perdure.cli.questions import describe_question, find_choice
from perdure.client.protocol import ConversationHandle
from perdure.errors import Conflict, Invalid
from perdure.events.status import WaitDetail
from perdure.operations.error_reports import EXIT_CONFLICT, EXIT_OK


async def answer(options: waiting.Answer) -> int:
    """Answer the question that waits, or show it."""
    conversation = open_conversation(await connect_client(), options.conversation_id)
    wait = await _find_question(conversation)
    fields: dict[str, Any] = {"conversation_id": conversation.id}
    if options.text is None:
        lines = describe_question(wait)
        hint = f"Answer it: `perdure answer {conversation.id} TEXT`."
        fields |= wait.model_dump(exclude={"signal"})
        show_result(fields, options.output, *lines, remark=hint)
        return EXIT_CONFLICT
    text = read_text(options.text).strip()
    choice = find_choice(text, wait.choices)
    words = text if choice is None else None
    answered = await conversation.answer(words, choice, options.call)
    fields["answer"] = answered
    show_result(fields, options.output, remark=f"answered: {answered}")
    return EXIT_OK


async def _find_question(conversation: ConversationHandle) -> WaitDetail:
    """Return the question that waits. Raises Conflict where none does."""
    state = await conversation.require_open()
    if state.wait is None or state.wait.question is None:
        raise Conflict(
            f"No question of {conversation.id} waits for an answer: its status is {state.status}."
        )
    return state.wait.detail()


async def signal(options: waiting.Signal) -> None:
    """Send a signal, and say whether the agent was waiting for it."""
    data = None if options.data is None else _parse_data(read_text(options.data))
    conversation = open_conversation(await connect_client(), options.conversation_id)
    sent = await conversation.signal(options.name, data, options.id)
    fields = {"conversation_id": conversation.id, "name": options.name, **sent.model_dump()}
    remark = (
        "The agent was waiting for it, and goes on."
        if sent.taken
        else f"No agent waits for {options.name!r} yet: it is kept for the next wait of that name."
    )
    show_result(fields, options.output, remark=remark)


def _parse_data(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid(
            f"--data is no JSON ({error}).", "Write a text with its quotes: '\"text\"'."
        ) from error
