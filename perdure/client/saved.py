"""Waiting for what a worker saves beside a log."""

import asyncio
from contextlib import suppress

from perdure.errors import Unreachable
from perdure.storage.errors import StoreUnavailable
from perdure.storage.log.cached_state import parse_cached_state
from perdure.storage.log.readable import ReadableLog

MAX_SAVE_WAIT = 5.0
"""Seconds after which a command ends though the worker has not saved."""

POLL_INTERVAL = 0.02


async def wait_until_saved(
    log: ReadableLog, next_seq: int, max_wait: float = MAX_SAVE_WAIT
) -> None:
    """Wait until the state at `next_seq`, and with it `llm_messages.json`, is saved.

    Returns after `max_wait` seconds in any case: the events are safe, and the rest follows.
    """
    with suppress(TimeoutError, StoreUnavailable, Unreachable):
        async with asyncio.timeout(max_wait):
            while True:
                saved = parse_cached_state(await log.load_state())
                if saved.state.next_seq >= next_seq:
                    return
                await asyncio.sleep(POLL_INTERVAL)
