"""Following a conversation to the end of a turn."""

import asyncio
from typing import Any

from agent.start import snapshot
from agent.state import State
from cli.events_shown import show_entry
from cli.failures import FAILED, OK
from cli.output import Format, show, show_json
from client.conversation import Conversation
from client.errors import TimedOut


async def follow(
    conversation: Conversation,
    message_id: str,
    after: int,
    output: Format,
    limit: float | None,
) -> State:
    """Show the events after slot `after` until the turn that the message began is over.

    Raises TimedOut after `limit` seconds, and what `Conversation.finished` raises.
    """
    try:
        async with asyncio.timeout(limit):
            return await _follow(conversation, message_id, after, output)
    except TimeoutError as error:
        raise TimedOut(
            f"The turn was not over within {limit:g} s.",
            f"It goes on; `perdure watch {conversation.id}` shows it.",
        ) from error


async def _follow(conversation: Conversation, message_id: str, after: int, output: Format) -> State:
    over = asyncio.ensure_future(conversation.finished(message_id))

    async def is_over() -> bool:
        return over.done()

    try:
        async for entry in conversation.log.tail(after, idle=is_over):
            if output is not Format.json:
                show_entry(entry, output)
        return await over
    finally:
        over.cancel()


def conclude(conversation_id: str, state: State, output: Format) -> int:
    """Print where the conversation stands after a turn; the exit code tells it too."""
    failed = state.status in ("error", "stuck")
    if output is Format.text:
        show(f"\n{state.status} after {_taken(state)}")
    else:
        show_json({"result": result_of(conversation_id, state)}, output)
    return FAILED if failed else OK


def result_of(conversation_id: str, state: State) -> dict[str, Any]:
    """Where a conversation stands, as JSON."""
    return snapshot(conversation_id, state).model_dump(mode="json")


def _taken(state: State) -> str:
    spent = state.spent
    tokens = spent.prompt_tokens + spent.completion_tokens
    answers = f"{state.answers} answer{'' if state.answers == 1 else 's'} of the model"
    return f"{answers}: {tokens:,} tokens, ${spent.cost:.4f}"
