"""Saving the state of a conversation, and `llm_messages.json`, beside its log."""

import asyncio
import logging

from perdure.activities.support.resources import Resources
from perdure.agent.loop.state import State, saves_messages_at_rest
from perdure.events.control import ConversationStateUpdateEvent
from perdure.exports.format import ExportMetadata, Part
from perdure.exports.results import RESULTS
from perdure.storage.keys import LLM_MESSAGES, conversation_prefix
from perdure.storage.log.cached_state import encode_cached_state
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.exporting import export

logger = logging.getLogger(__name__)

MAX_EXPORT_BYTES = 64 * 1024 * 1024
"""Size limit, as the store takes an object whole."""

SAVE_TIMEOUT = 20.0
"""Seconds after which a conversation closes without it, well below the step's timeout."""


async def save_state(log: EventLog, state: State, run: str = "", closing: bool = False) -> None:
    """Write `base_state.json`; seal the full segments, or all segments when `closing`.

    `run` is that of `EventLog.seal`.
    """
    await log.save_state(encode_cached_state(state))
    await log.seal(state.next_seq, closing, run)


async def save_resting(
    resources: Resources, log: EventLog, state: State, run: str = "", ending: bool = False
) -> None:
    """Save a conversation that waits, or whose workflow is `ending`.

    The messages come first: whoever sees the new state finds them.
    """
    if resources.save_llm_messages and (ending or saves_messages_at_rest(state)):
        await save_messages(log, state)
    await save_state(log, state, run)
    await resources.list_notes.note(log, state)


async def save_closed(resources: Resources, log: EventLog, state: State, run: str = "") -> None:
    """Save everything about a conversation that has ended."""
    await save_state(log, state, run, closing=True)
    await resources.list_notes.note(log, state)
    if resources.save_llm_messages:
        await save_messages(log, state)


async def save_messages(log: EventLog, state: State) -> None:
    """Write `llm_messages.json`; an error is only logged, as an export can make the file later.

    A conversation without messages and a delegated one have no such file.
    """
    try:
        async with asyncio.timeout(SAVE_TIMEOUT):
            if state.first_user_seq is not None and not await _is_delegate(log):
                await _write(log, state)
    except Exception as error:
        name = type(error).__name__
        logger.warning(
            "%s of %s is not written (%s: %s): `perdure export` makes it at any time",
            *(LLM_MESSAGES, log.conversation_id, name, error),
        )


async def _write(log: EventLog, state: State) -> None:
    body = bytearray()

    def take(part: Part) -> None:
        body.extend(part.body)
        if len(body) > MAX_EXPORT_BYTES:
            raise ValueError(f"it has more than {MAX_EXPORT_BYTES:,} bytes")

    model = state.spec.model if state.spec else None
    limit, vision = (model.max_message_chars, model.vision) if model else (None, None)
    metadata = ExportMetadata(log.conversation_id, max_message_chars=limit, vision=vision)
    await export(log, RESULTS, metadata, take, state.next_seq)
    key = conversation_prefix(log.user_id, log.conversation_id) + LLM_MESSAGES
    await log.store.replace(key, bytes(body))


async def _is_delegate(log: EventLog) -> bool:
    """Tell whether the first opening names a parent; a fork has none."""
    first = (await log.get((await log.lineage())[0].first)).event
    if not isinstance(first, ConversationStateUpdateEvent) or first.key != "opened":
        return False
    return "parent" in first.value
