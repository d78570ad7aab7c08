"""What is in the way of a turn, in the words of a chat."""

import asyncio

from perdure.cli.follow import TROUBLE_CHECK_INTERVAL
from perdure.cli.output import note
from perdure.client.conversation import Conversation
from perdure.storage.errors import StoreError

CHAT_WORDS = {
    "`perdure interrupt` stops it.": "^C stops it.",
    "A message or `perdure resume` goes on.": "A message or /resume goes on.",
}


async def note_trouble(conversation: Conversation) -> None:
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
