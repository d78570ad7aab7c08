"""Following a conversation to the end of a turn."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Annotated, Any

import typer

from agent.start import snapshot
from agent.state import State, asking
from cli.events_shown import show_entry
from cli.failures import CONFLICT, FAILED, OK
from cli.growing import growing
from cli.output import Format, note, show, show_json
from client.conversation import Conversation
from client.errors import TimedOut
from events.entry import Entry

Timeout = Annotated[
    float | None, typer.Option(help="Seconds to wait; the work goes on after that.", min=0)
]

PAUSE = 2.0
"""Seconds between two looks at whether it goes on."""


async def follow(
    conversation: Conversation,
    message_id: str | None,
    after: int,
    output: Format,
    limit: float | None = None,
    tell: Callable[[Entry], None] | None = None,
) -> State:
    """Show the events after slot `after` until the turn that the message began is over.

    `tell` shows one, where it is not to be shown as events are. Raises TimedOut after `limit`
    seconds, and what `Conversation.finished` raises.
    """

    def told(entry: Entry) -> None:
        if tell is not None:
            tell(entry)
        elif output is not Format.json:
            show_entry(entry, output)

    try:
        async with asyncio.timeout(limit):
            return await _follow(conversation, message_id, after, output, told)
    except TimeoutError as error:
        raise TimedOut(
            f"The turn was not over within {limit:g} s.",
            f"It goes on; `perdure watch {conversation.id}` shows it.",
        ) from error


async def _follow(
    conversation: Conversation,
    message_id: str | None,
    after: int,
    output: Format,
    tell: Callable[[Entry], None],
) -> State:
    over = asyncio.ensure_future(conversation.finished(message_id, after))

    async def is_over() -> bool:
        return over.done()

    try:
        async with growing(conversation.live(), output) as settle, beside(trouble(conversation)):
            async for entry in conversation.log.tail(after, idle=is_over):
                settle(entry)
                tell(entry)
        return await over
    finally:
        over.cancel()


@contextlib.asynccontextmanager
async def beside(telling: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """While it is used, `telling` goes on."""
    task = asyncio.create_task(telling)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def trouble(conversation: Conversation) -> None:
    """Note why the conversation does not go on, each reason once, and that it does; without end."""
    known: str | None = None
    while True:
        await asyncio.sleep(PAUSE)
        found = await conversation.trouble()
        if found is not None and found.cause != known:
            note(found.sentence, "dim" if found.slow else "yellow")
        elif found is None and known is not None:
            note("It goes on.")
        known = found.cause if found else None


def conclude(conversation_id: str, state: State, output: Format) -> int:
    """Print where the conversation stands after a turn; the exit code tells it too."""
    if output is Format.text:
        show(f"\n{state.status} after {_taken(state)}")
        note_waiting(conversation_id, state)
    else:
        show_json({"result": result_of(conversation_id, state)}, output)
    return exit_code(state)


def note_waiting(conversation_id: str, state: State) -> None:
    """Tell how to answer where actions wait for a person."""
    if waiting := asking(state):
        calls = " ".join(f"--call {one.tool_call_id}" for one in waiting)
        note(f"It waits for you: `perdure approve {conversation_id} {calls}`, or `reject`.")


def exit_code(state: State) -> int:
    """0 for a turn that came to its end, 1 for one that failed, 4 for one that waits for you."""
    if state.status in ("error", "stuck"):
        return FAILED
    return OK if state.status == "finished" else CONFLICT


def result_of(conversation_id: str, state: State) -> dict[str, Any]:
    """Where a conversation stands, as JSON."""
    return snapshot(conversation_id, state).model_dump(mode="json")


def _taken(state: State) -> str:
    spent = state.spent
    tokens = spent.prompt_tokens + spent.completion_tokens
    answers = f"{state.answers} answer{'' if state.answers == 1 else 's'} of the model"
    return f"{answers}: {tokens:,} tokens, ${spent.cost:.4f}"
