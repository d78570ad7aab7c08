"""What is left beside a log when its conversation closes: all that was said, as messages."""

import asyncio
import logging

from agent.state import State
from events.control import ConversationStateUpdateEvent
from exports.format import About, Part
from exports.results import RESULTS
from storage.errors import StoreError
from storage.exporting import export
from storage.keys import LLM_MESSAGES, conversation_prefix
from storage.log import EventLog

logger = logging.getLogger(__name__)

LONGEST = 64 * 1024 * 1024
"""Bytes that are held, for the store takes an object whole."""

PATIENCE = 20.0
"""Seconds before a conversation closes without it: well below what a step may take."""


class TooLong(StoreError):
    """There is more of it than a worker holds."""


async def save_messages(log: EventLog, state: State) -> None:
    """Write `llm_messages.json`; what keeps it from being written is logged, and nothing more.

    Not where nobody said a word, and not for a conversation on behalf of another.
    """
    try:
        async with asyncio.timeout(PATIENCE):
            if state.first is not None and not await _is_delegate(log):
                await _write(log)
    except Exception as error:
        name = type(error).__name__
        logger.warning(
            "%s of %s is not written (%s: %s): `perdure export` makes it at any time",
            *(LLM_MESSAGES, log.conversation_id, name, error),
        )


async def _write(log: EventLog) -> None:
    body = bytearray()

    def take(part: Part) -> None:
        body.extend(part.body)
        if len(body) > LONGEST:
            raise TooLong(f"it has more than {LONGEST:,} bytes")

    await export(log, RESULTS, About(log.conversation_id), take)
    place = conversation_prefix(log.user_id, log.conversation_id) + LLM_MESSAGES
    await log.store.replace(place, bytes(body))


async def _is_delegate(log: EventLog) -> bool:
    """Whether the first opening of its own names a parent; a fork has none."""
    first = (await log.at((await log.lineage())[0].first)).event
    match first:
        case ConversationStateUpdateEvent(key="opened", value={"parent": _}):
            return True
        case _:
            return False
