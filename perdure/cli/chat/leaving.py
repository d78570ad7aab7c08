"""What is said when a person leaves a conversation: what becomes of it, and how to come back."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from perdure.agent.loop.state import actions_to_confirm
from perdure.cli.chat.chat import Chat


def describe_leaving(chat: Chat, at_work: bool, interrupted: bool) -> str:
    """Describe what becomes of a conversation that is left; empty if it has not begun."""
    if chat.spec is not None:
        return ""
    return " ".join(_sentences(chat, at_work and not interrupted, interrupted))


def _sentences(chat: Chat, goes_on: bool, interrupted: bool) -> Iterator[str]:
    own_stack = chat.environment.own_stack is not None
    name = chat.conversation.id
    asks = chat.state.status == "waiting_for_answer"
    waits = (asks or bool(actions_to_confirm(chat.state))) and not goes_on
    if interrupted:
        yield "The turn is interrupted, and the conversation waits for you."
    elif waits:
        yield "The conversation waits for your answer."
    elif goes_on and not own_stack:
        yield f"The turn goes on without you: `perdure watch {name}` shows it."
    elif goes_on:
        yield (
            "The servers that this command started end with it: the turn stops where it is, and "
            "goes on by itself as soon as `perdure dev` runs."
        )
    else:
        yield "The conversation is at rest."
    comes_back = f"`perdure chat --resume {name}` comes back to it"
    if own_stack:
        comes_back = f"`perdure dev`, and in another terminal {comes_back}"
    elif waits:
        answer = f"answer {name} TEXT" if asks else f"approve {name}"
        comes_back += f", `perdure {answer}` answers it"
    yield f"{comes_back}."
    if chat.script is not None and (goes_on or waits):
        yield "The scripted model ends with this command, too: the conversation will ask in vain."


@contextmanager
def leave_at_end_signals(leave: Callable[[], None]) -> Iterator[None]:
    """Leave at SIGTERM and SIGHUP, too: the terminal gets its modes back."""
    loop, signals = asyncio.get_running_loop(), (signal.SIGTERM, signal.SIGHUP)
    for number in signals:
        loop.add_signal_handler(number, leave)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
