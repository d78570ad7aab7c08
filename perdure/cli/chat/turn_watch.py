"""A turn while it is at work: its steps, its time, and what is in its way."""

import asyncio
import contextlib
from collections.abc import Callable

from perdure.cli.follow import TROUBLE_CHECK_INTERVAL
from perdure.cli.output import note
from perdure.client.protocol import ConversationHandle
from perdure.client.running_step import RunningStep
from perdure.operations.error_reports import EXPECTED_ERRORS
from perdure.storage.errors import StoreError

CHAT_WORDS = {
    "`perdure interrupt` stops it.": "^C stops it.",
    "A message or `perdure resume` goes on.": "A message or /resume goes on.",
}

REDRAW_INTERVAL = 0.2
"""Seconds between two frames of the spinner."""


async def watch_turn(
    conversation: ConversationHandle,
    set_steps: Callable[[tuple[RunningStep, ...]], None],
    redraw: Callable[[], None],
) -> None:
    """Show the steps at work, the time, and what is in their way, until cancelled."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_watch_steps(conversation, set_steps))
        group.create_task(note_trouble(conversation))
        while True:
            redraw()
            await asyncio.sleep(REDRAW_INTERVAL)


async def _watch_steps(
    conversation: ConversationHandle, set_steps: Callable[[tuple[RunningStep, ...]], None]
) -> None:
    """Show the steps at work, also those after an outage, of which `note_trouble` tells."""
    while True:
        with contextlib.suppress(*EXPECTED_ERRORS):
            async for steps in conversation.watch_running_steps():
                set_steps(steps)
        await asyncio.sleep(TROUBLE_CHECK_INTERVAL)


async def note_trouble(conversation: ConversationHandle) -> None:
    """Note, until cancelled, why the turn does not go on, each reason once, and when it does."""
    last_cause: str | None = None
    while True:
        await asyncio.sleep(TROUBLE_CHECK_INTERVAL)
        try:
            trouble = await conversation.diagnose()
        except StoreError:  # whoever reads the log reports it
            continue
        if trouble is not None and trouble.cause != last_cause:
            sentence = trouble.sentence
            for command, key in CHAT_WORDS.items():
                sentence = sentence.replace(command, key)
            note(sentence, "dim" if trouble.slow else "yellow")
        elif trouble is None and last_cause is not None:
            note("It goes on.")
        last_cause = trouble.cause if trouble else None
